import { pathOf } from "../address/request-path.ts";
import { type Denial, isFailure } from "./denial.ts";
import type { Emit } from "./egress-options.ts";
import { createRepeats, type Repeats } from "./repeats.ts";

const HOST_MAX = 300;
const PATH_MAX = 2048;
const METHOD_MAX = 32;

/** Denials become events. Those for the same host, port and reason within the window are one kind. */
export function createDenialLog(options: { emit: Emit; windowMs: number; differentMax: number }): Repeats<Denial> {
  const { emit, windowMs, differentMax } = options;
  return createRepeats({
    windowMs,
    differentMax,
    tell: (denial, count) => emit(eventOf(denial, count)),
    keyOf: ({ asked, reason }) => `${asked.host}\0${asked.port}\0${reason}`,
    summarised: (denial) => ({ ...denial, asked: { ...denial.asked, host: "*", port: 0 } }),
  });
}

function eventOf({ asked, reason, text }: Denial, count: number): Parameters<Emit>[0] {
  const { host, port, via, method, path } = asked;
  const data = {
    host: host.slice(0, HOST_MAX),
    port,
    via,
    method: method?.slice(0, METHOD_MAX) ?? null,
    path: path === null ? null : pathOf(path).slice(0, PATH_MAX),
    text,
    count,
  };
  return isFailure(reason) ? { type: "network.failed", data: { ...data, reason } } : { type: "network.denied", data: { ...data, reason } };
}
