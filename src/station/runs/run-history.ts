import type { History } from "../../agent/tool.ts";
import type { Log } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { parseRunEvent } from "./owned-journal.ts";

/** Reads a run's whole log page by page, for the agent's `recall` tool. */
export function runHistory(log: Log, run: string): History {
  return {
    async *events() {
      for await (const page of readPages(log, runStream(run)))
        for (const stored of page) yield { seq: stored.seq, event: parseRunEvent(stored) };
    },
  };
}
