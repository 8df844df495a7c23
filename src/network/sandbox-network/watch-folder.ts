import { type FSWatcher, watch } from "node:fs";

/** How often we poll a folder that cannot be watched. */
const POLL_MS = 250;

/**
 * Calls `onChange` when something in a folder may have changed, with its name, or null if that is unknown. The kernel
 * limits the watches of each user, and other programs may have used them up: the folder is then polled. `persistent`
 * keeps the process alive until closed.
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
