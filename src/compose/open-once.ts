import type { LocalStation } from "../station/local-station.ts";

/** One log, and one set of driven runs, for all verbs of this process. */
export function openOnce(open: () => Promise<LocalStation>): { local: () => Promise<LocalStation>; close: () => Promise<void> } {
  let opening: Promise<LocalStation> | undefined;
  return {
    local() {
      opening ??= open().catch((error: unknown) => {
        // The next call tries again.
        opening = undefined;
        throw error;
      });
      return opening;
    },
    close: async () => await (await opening?.catch(() => undefined))?.[Symbol.asyncDispose](),
  };
}
