import type { DrivenFacts } from "../../contract/driven.ts";
import { DrivenKind, drivenFamilies } from "../../contract/driven-kinds.ts";
import { makeEvent } from "../../contract/event-family.ts";
import { BY_STATION, poisonText } from "../../contract/poison.ts";
import type { Turn } from "../../lib/turns.ts";
import type { Log } from "../../log/log.ts";
import { appendForeign } from "../runs/append-foreign.ts";
import { headOfRun } from "../runs/head-of-run.ts";

/**
 * Pauses the run or the durable job whose turn took a station down, before it is taken up again. Its log is appended to
 * and not folded: that may be what it died of. Resolves with whether it was paused.
 */
export async function pausePoisoned(log: Log, { stream }: Pick<Turn, "stream">): Promise<boolean> {
  const [prefix = "", id = ""] = stream.split("/", 2);
  if (prefix === "run") return await pauseRun(log, id);
  const kind = DrivenKind.safeParse(prefix);
  const head = kind.success ? await log.head(stream) : null;
  if (!kind.success || head === null) return false;
  const { finish, paused } = head.head as unknown as DrivenFacts;
  if (finish !== null || paused !== null) return false;
  const data = { by: BY_STATION, text: poisonText(kind.data, id) };
  await log.append(stream, [makeEvent(drivenFamilies[kind.data], { type: "driven.paused", data })], { expectedSeq: head.seq });
  return true;
}

/** A sub-run continues with its run, so the whole run is paused. */
async function pauseRun(log: Log, id: string): Promise<boolean> {
  let run = id;
  for (let { facts } = await headOfRun(log, run); facts.parent !== null; { facts } = await headOfRun(log, run)) run = facts.parent.run;
  let isPaused = false;
  await appendForeign(
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
