import { createEventStreams } from "./events.ts";
import { serveCreateHeld, serveHold } from "./hold.ts";
import { servePort } from "./port.ts";
import { createProcessStreams } from "./process.ts";
import type { ServeStreams } from "./stream.ts";

/** Creates the handler of each WebSocket. */
export function createServeStreams(): { streams: ServeStreams; close(): Promise<void> } {
  const processes = createProcessStreams();
  return {
    streams: {
      "events.stream": createEventStreams(),
      "sandboxes.createHeld": serveCreateHeld,
      "sandboxes.hold": serveHold,
      "processes.stream": processes.serve,
      "ports.connect": servePort,
    },
    close: () => processes.close(),
  };
}
