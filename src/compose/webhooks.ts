import type { LocalStation } from "../station/local-station.ts";
import type { LocalWebhooks } from "../station/webhooks/local-webhooks.ts";
import { lazyVerbs } from "./lazy-verbs.ts";

/** To close what was never opened costs nothing. */
export function composeWebhooks(
  { stateDir, say }: { stateDir: string; say: (text: string) => void },
  local: () => Promise<LocalStation>,
): LocalWebhooks {
  let opened: Promise<LocalWebhooks> | undefined;
  const verbs = lazyVerbs<LocalWebhooks>(
    {
      create: "answer",
      get: "answer",
      list: "answer",
      remove: "answer",
      pause: "answer",
      resume: "answer",
      deliveries: "answer",
      replay: "answer",
      test: "answer",
      deliver: "answer",
      close: "answer",
    },
    () => {
      opened ??= import("../station/webhooks/local-webhooks.ts").then(({ createLocalWebhooks }) =>
        createLocalWebhooks({ stateDir, notice: say, lastPosition: async () => (await local()).log.lastPosition() }),
      );
      // What kept it from being opened may be mended before the next call.
      opened.catch(() => {
        opened = undefined;
      });
      return opened;
    },
  );
  return { ...verbs, close: async () => await (await opened)?.close() };
}
