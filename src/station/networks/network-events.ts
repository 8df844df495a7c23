import { SandboxId } from "../../contract/ids.ts";
import { networkEvents as familyOfNetworks, type NetworkEvent } from "../../contract/network-event.ts";
import { readNetworkLog } from "../../network/held/network-log.ts";
import { watchFolder } from "../../network/held/watch-folder.ts";
import type { RunVerbs } from "../runs/verbs.ts";

/**
 * What happened in the network of a sandbox or a run, oldest first; with `follow`, also what is to come, until the
 * signal.
 */
export async function* networkEvents(
  name: string,
  options: {
    follow?: boolean;
    signal?: AbortSignal;
    events: RunVerbs["events"];
    sandboxOf(): Promise<SandboxId>;
    folderOf(id: SandboxId): Promise<string>;
  },
): AsyncGenerator<NetworkEvent> {
  const ofRun = !SandboxId.safeParse(name).success;
  if (ofRun) {
    // A run's own log has them, also when its sandbox is gone.
    for await (const { seq: _, ...event } of options.events(name)) {
      if (familyOfNetworks.byType.has(event.type)) yield event as NetworkEvent;
    }
    if (!options.follow) return;
  }
  const folder = await options.folderOf(await options.sandboxOf());
  const fresh = newsOf(() => readNetworkLog(folder));
  if (ofRun) await fresh();
  if (!options.follow) return yield* await fresh();
  const { signal } = options;
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

/** What has come since the last time, of a log that only grows, and loses its oldest when it has grown too long. */
export function newsOf<Event>(read: () => Promise<Event[]>): () => Promise<Event[]> {
  let seen = 0;
  let last = "";
  return async () => {
    const all = await read();
    const isCut = all.length < seen || (seen > 0 && JSON.stringify(all[seen - 1]) !== last);
    const news = all.slice(isCut ? all.findLastIndex((event) => JSON.stringify(event) === last) + 1 : seen);
    seen = all.length;
    last = JSON.stringify(all.at(-1)) ?? "";
    return news;
  };
}
