import type { History } from "../../agent/tool.ts";
import type { Log } from "../../log/log.ts";
import { runStream } from "./head-of-run.ts";
import { parseRunEvent } from "./owned-journal.ts";

const PAGE = 500;

/** A run's whole log, page by page, for the agent's `recall`. */
export function runHistory(log: Log, run: string): History {
  return {
    async *events() {
      for (let fromSeq = 1; ; ) {
        const page = await log.read(runStream(run), { fromSeq, limit: PAGE });
        for (const stored of page) yield { seq: stored.seq, event: parseRunEvent(stored) };
        if (page.length < PAGE) return;
        fromSeq = (page.at(-1)?.seq ?? fromSeq) + 1;
      }
    },
  };
}
