import type { History } from "../../agent/tool.ts";
import type { Log } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { parseRunEvent } from "./owned-journal.ts";
import { readRewoundEvents } from "./rewound-events.ts";

/**
 * Reads a run's whole log page by page, for the agent's `recall` tool. What was rewound never happened to the agent.
 */
export function runHistory(log: Log, run: string): History {
  return {
    async *events() {
      const { facts } = await headOfRun(log, run);
      const rewound = facts.rewinds === 0 ? null : await readRewoundEvents(log, run);
      for await (const page of readPages(log, runStream(run)))
        for (const stored of page) if (rewound?.has(stored.seq) !== true) yield { seq: stored.seq, event: parseRunEvent(stored) };
    },
  };
}
