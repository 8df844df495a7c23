import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { QueuePlace, RunQueueView } from "../../contract/run/run-queue.ts";
import type { Log } from "../../log/log.ts";
import { toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { queuePlace } from "./queue-place.ts";

const SHOWN_MAX = 1000;
const QUEUED_MAX = 100_000;

/** Returns the waiting runs, sorted by place. */
export function queueRows(
  waiting: readonly RunFacts[],
  placeOf: (facts: RunFacts) => QueuePlace | null,
): Pick<RunQueueView, "runs" | "total"> {
  const rows = waiting.flatMap((facts) => {
    const place = placeOf(facts);
    const { run, name, owner, agent, title } = facts;
    return place === null ? [] : [{ ...place, run, name, owner, agent, title }];
  });
  const last = Number.MAX_SAFE_INTEGER;
  rows.sort((a, b) => (a.position ?? last) - (b.position ?? last) || (a.since < b.since ? -1 : 1));
  return { runs: rows.slice(0, SHOWN_MAX), total: rows.length };
}

/** Returns the queue as recorded in the log, for a process that does not drive it. */
export async function storedQueue(log: Log): Promise<RunQueueView> {
  const { heads } = await log.heads({ prefix: runStream(""), open: true, where: { driver: ["station"] }, limit: QUEUED_MAX });
  const waiting = heads.map((head) => toRunHead(head).facts).filter(({ queued }) => queued !== null);
  return { ...queueRows(waiting, (facts) => queuePlace(facts, null, null)), atWork: null };
}
