import { useSyncExternalStore } from "react";

const narrow = () => matchMedia("(max-width: 720px)");

/** Whether there is room for one column only. The same width as in the style sheets. */
export function useIsPhone(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      const query = narrow();
      query.addEventListener("change", watcher);
      return () => query.removeEventListener("change", watcher);
    },
    () => narrow().matches,
  );
}
