import { type FSWatcher, watch } from "node:fs";

/** How often a folder is looked at that cannot be watched. */
const POLL_MS = 250;

/**
 * Calls when something in a folder may have changed, with the name of what did, or null when that is not known. The
 * kernel gives each user a number of watches only, and other programs may have used them up: then the folder is looked
 * at now and then. `persistent` keeps the process alive until closed.
 */
export function watchFolder(
  folder: string,
  onChange: (name: string | null) => void,
  { persistent = false }: { persistent?: boolean } = {},
): { close(): void } {
  let watcher: FSWatcher | undefined;
  let timer: NodeJS.Timeout | undefined;
  const poll = () => {
    timer ??= setInterval(() => onChange(null), POLL_MS);
    if (!persistent) timer.unref();
  };
  try {
    watcher = watch(folder, { persistent }, (_event, name) => onChange(name));
    watcher.on("error", poll);
  } catch {
    poll();
  }
  return {
    close() {
      watcher?.close();
      clearInterval(timer);
    },
  };
}
