import type { JobFacts } from "../../contract/durable/durable-job.ts";
import { JobKind } from "../../contract/durable/durable-kinds.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { jobFamilies } from "../../contract/feed/fed-event.ts";
import { BY_STATION, poisonText } from "../../contract/run/poison.ts";
import type { Turn } from "../../lib/turns.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";

/**
 * Pauses the run or durable job whose turn crashed a station, before a station resumes it. Appends to its log without
 * folding it, because folding may be what crashed. Resolves with whether it was paused.
 */
export async function pausePoisoned(log: Log, { stream }: Pick<Turn, "stream">): Promise<boolean> {
  const [prefix = "", id = ""] = stream.split("/", 2);
  if (prefix === "run") return await pauseRun(log, id);
  const kind = JobKind.safeParse(prefix);
  const head = kind.success ? await log.head(stream) : null;
  if (!kind.success || head === null) return false;
  const { finish, paused } = head.head as unknown as JobFacts;
  if (finish !== null || paused !== null) return false;
  const data = { by: BY_STATION, text: poisonText(kind.data, id) };
  await log.append(stream, [makeEvent(jobFamilies[kind.data], { type: "driven.paused", data })], { expectedSeq: head.seq });
  return true;
}

/** Pauses the whole run, because a sub-run continues with it. */
async function pauseRun(log: Log, id: string): Promise<boolean> {
  let run = id;
  for (let { facts } = await headOfRun(log, run); facts.parent !== null; { facts } = await headOfRun(log, run)) run = facts.parent.run;
  let isPaused = false;
  await appendUnowned(
    log,
    run,
    ({ status, paused }) => {
      isPaused = status !== "ended" && paused?.why !== "user";
      return isPaused ? { type: "run.paused", data: { why: "user", text: poisonText("run", run) } } : null;
    },
    { alsoEnded: true },
  );
  return isPaused;
}
