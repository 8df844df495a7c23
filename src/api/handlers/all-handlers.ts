import type { Handlers } from "../call.ts";
import { derivedHandlers } from "./derived-handlers.ts";
import { execHandlers } from "./exec.ts";
import { fileHandlers } from "./files.ts";
import { processHandlers } from "./processes.ts";
import { runHandlers } from "./runs.ts";
import { type StationControl, stationHandlers } from "./station.ts";
import { unusualHandlers } from "./unusual-verbs.ts";

/** Returns the handler of each route, by its name. */
export function allHandlers(options: { server: StationControl }): Handlers {
  return {
    ...derivedHandlers(),
    ...stationHandlers(options.server),
    ...execHandlers,
    ...processHandlers(),
    ...fileHandlers,
    ...runHandlers,
    ...unusualHandlers,
  };
}
