import type { InsideVerbs } from "../station/inside/verbs.ts";
import type { LocalStation } from "../station/local-station.ts";
import { lazyVerbs } from "./lazy-verbs.ts";

export function composeInside(stateDir: string, local: () => Promise<LocalStation>): InsideVerbs {
  return lazyVerbs<InsideVerbs>(
    {
      report: "answer",
      takeMessages: "answer",
      beat: "answer",
      putArtifact: "answer",
      view: "answer",
      tell: "answer",
      events: "answer",
      follow: "stream",
      artifacts: "answer",
      readArtifact: "answer",
    },
    async () => {
      const [{ createLocalInside }, { createStore }, { findRun }] = await Promise.all([
        import("../station/inside/local-inside.ts"),
        import("../sandbox/store.ts"),
        import("../station/names/find-run.ts"),
      ]);
      const log = async () => (await local()).log;
      return createLocalInside({ stateDir, store: createStore({ stateDir }), log, findRun: async (word) => findRun(word, await log()) });
    },
  );
}
