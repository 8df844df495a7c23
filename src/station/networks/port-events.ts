import { CaissonError } from "../../contract/error/error.ts";
import { PortClosed, PortOpened } from "../../contract/network/network-event.ts";
import { streamOf } from "../../lib/stream-of.ts";
import { watchPorts } from "../../network/preview/watch-ports.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { PortEvent } from "../../verbs/networks.ts";

/**
 * Yields each port that starts or stops listening, beginning with those that already listen. Ends with the signal or
 * the sandbox.
 */
export function portEvents(sandbox: OwnedSandbox, signal?: AbortSignal): AsyncIterable<PortEvent> {
  return streamOf(async (tell, left) => {
    const watching = watchPorts({
      listeners: () => sandbox.listeners(),
      onOpened: ({ port, address }) => tell(PortOpened.make({ sandbox: sandbox.id, port, address })),
      onClosed: ({ port }) => tell(PortClosed.make({ sandbox: sandbox.id, port })),
      signal: signal === undefined ? left : AbortSignal.any([signal, left]),
    });
    const end = await Promise.race([watching, sandbox.closed.then(() => null)]);
    if (end?.why === "failed" && !(end.error instanceof CaissonError && end.error.code === "lost")) throw end.error;
  });
}
