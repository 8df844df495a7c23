import { pathOf } from "../address/request-path.ts";
import { type Denial, isFailure } from "./denial.ts";
import type { Emit } from "./egress-options.ts";
import { createRepeats, type Repeats } from "./repeats.ts";

const HOST_MAX = 300;
const PATH_MAX = 2048;
const METHOD_MAX = 32;

/** Turns denials into events. Denials for the same host, port and reason within the window become one event. */
export function createDenialLog(options: { emit: Emit; windowMs: number; differentMax: number }): Repeats<Denial> {
  const { emit, windowMs, differentMax } = options;
  return createRepeats({
    windowMs,
    differentMax,
    tell: (denial, count) => emit(eventOf(denial, count)),
    keyOf: ({ attempt, reason }) => `${attempt.host}\0${attempt.port}\0${reason}`,
    summarised: (denial) => ({ ...denial, attempt: { ...denial.attempt, host: "*", port: 0 } }),
  });
}

function eventOf({ attempt, reason, text }: Denial, count: number): Parameters<Emit>[0] {
  const { host, port, via, method, path } = attempt;
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
