import { pathOf } from "../address/request-path.ts";
import type { Denial } from "./denial.ts";
import type { Emit } from "./egress-options.ts";

export interface DenialLog {
  /** The first of its kind becomes an event at once; the same again within the window are counted into one at its end. */
  add(denial: Denial): void;
  /** What was counted becomes events now. */
  flush(): void;
}

interface Window {
  last: Denial;
  count: number;
  timer: NodeJS.Timeout;
}

const HOST_MAX = 300;
const PATH_MAX = 2048;
const METHOD_MAX = 32;

/** A program that tries for ever must not fill the log: not by asking for the same, and not by asking for something else each time. */
export function createDenialLog(options: { emit: Emit; windowMs: number; differentMax: number }): DenialLog {
  const { emit, windowMs, differentMax } = options;
  const windows = new Map<string, Window>();
  const close = (key: string, window: Window) => {
    clearTimeout(window.timer);
    windows.delete(key);
    if (window.count > 0) emit(eventOf(window.last, window.count));
  };
  return {
    add(denial) {
      const { asked, reason } = denial;
      const own = `${asked.host}\0${asked.port}\0${reason}`;
      const isPast = !windows.has(own) && windows.size >= differentMax;
      const key = isPast ? `\0${reason}` : own;
      const last = isPast ? { ...denial, asked: { ...asked, host: "*", port: 0 } } : denial;
      const known = windows.get(key);
      if (known !== undefined) {
        known.last = last;
        known.count += 1;
        return;
      }
      const window: Window = { last, count: 0, timer: setTimeout(() => close(key, window), windowMs).unref() };
      windows.set(key, window);
      emit(eventOf(last, 1));
    },
    flush() {
      for (const [key, window] of [...windows]) close(key, window);
    },
  };
}

function eventOf({ asked, reason, text }: Denial, count: number): Parameters<Emit>[0] {
  const { host, port, via, method, path } = asked;
  return {
    type: "network.denied",
    data: {
      host: host.slice(0, HOST_MAX),
      port,
      via,
      reason,
      method: method?.slice(0, METHOD_MAX) ?? null,
      path: path === null ? null : pathOf(path).slice(0, PATH_MAX),
      text,
      count,
    },
  };
}
