import { CaissonError } from "../../contract/error.ts";
import { PortClosed, PortOpened } from "../../contract/network-event.ts";
import { watchPorts } from "../../network/preview/watch-ports.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { PortEvent } from "./verbs.ts";

/** Each port that begins to listen, those that listen already first, and each that stops. Ends with the signal or the sandbox. */
export async function* portEvents(sandbox: OwnedSandbox, signal?: AbortSignal): AsyncGenerator<PortEvent> {
  const waiting: PortEvent[] = [];
  const over = new AbortController();
  let news = Promise.withResolvers<void>();
  const tell = (event: PortEvent) => {
    waiting.push(event);
    news.resolve();
  };
  const watching = watchPorts({
    listeners: () => sandbox.listeners(),
    onOpened: ({ port, address }) => tell(PortOpened.make({ sandbox: sandbox.id, port, address })),
    onClosed: ({ port }) => tell(PortClosed.make({ sandbox: sandbox.id, port })),
    signal: signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]),
  });
  const ended = Promise.race([watching, sandbox.closed.then(() => null)]);
  try {
    for (;;) {
      const end = await Promise.race([news.promise.then(() => undefined), ended]);
      news = Promise.withResolvers();
      yield* waiting.splice(0);
      if (end === undefined) continue;
      if (end?.why === "failed" && !(end.error instanceof CaissonError && end.error.code === "lost")) throw end.error;
      return;
    }
  } finally {
    over.abort();
  }
}
