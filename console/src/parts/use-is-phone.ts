import { useSyncExternalStore } from "react";

const narrow = () => matchMedia("(max-width: 720px)");

/** Returns whether there is room for one column only. The style sheets use the same width. */
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
