import { type NumberedNetworkEvent, networkEvents } from "../../contract/network/network-event.ts";
import { readNetworkLog } from "../../network/sandbox-network/network-log.ts";
import { watchFolder } from "../../network/sandbox-network/watch-folder.ts";
import type { NumberedRunEvent } from "../../verbs/runs.ts";

/** Yields the network events of a run log, which outlives the sandbox. */
export async function* networkEventsOf(run: AsyncIterable<NumberedRunEvent>): AsyncGenerator<NumberedNetworkEvent> {
  for await (const event of run) if (isOfNetwork(event)) yield event;
}

const isOfNetwork = (event: NumberedRunEvent): event is NumberedRunEvent & NumberedNetworkEvent => networkEvents.byType.has(event.type);

/** Yields each event of the log in a sandbox's folder once, even if the oldest are dropped during the iteration. */
export async function* eventsInFolder(
  folder: string,
  { fromSeq = 1, follow = false, signal }: { fromSeq?: number; follow?: boolean; signal?: AbortSignal },
): AsyncGenerator<NumberedNetworkEvent> {
  let next = fromSeq;
  const fresh = async () => {
    const news = (await readNetworkLog(folder)).filter(({ seq }) => seq >= next);
    next = (news.at(-1)?.seq ?? next - 1) + 1;
    return news;
  };
  if (!follow) return yield* await fresh();
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  const isLog = (file: string | null) => file === null || file.endsWith(".jsonl");
  const watching = watchFolder(folder, (file) => isLog(file) && wake(), { persistent: true });
  signal?.addEventListener("abort", wake);
  try {
    while (!signal?.aborted) {
      yield* await fresh();
      await changed.promise;
      changed = Promise.withResolvers<void>();
    }
  } finally {
    watching.close();
    signal?.removeEventListener("abort", wake);
  }
}
