import type { Config } from "../../contract/config/config.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { readableEvent } from "../../contract/event/event-family.ts";
import { type GuardianExplanation, type GuardianLogEntry, type GuardianStanding, ListDecisions } from "../../contract/guardian/guardian.ts";
import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import { type GuardianEvent, guardianEvents } from "../../contract/guardian/guardian-event.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import { GUARDED_TERM } from "../../log/projection.ts";
import { readPages } from "../../log/read-pages.ts";
import type { GuardianVerbs } from "../../verbs/guardian.ts";
import { stationHealth } from "../health/station-beat.ts";
import { findRun } from "../names/find-run.ts";
import { headOfRun, toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { atMost, coherenceOf, unwatchedBecause } from "./choose-action.ts";
import { idleSteps, shownFindings } from "./detectors.ts";
import { trajectoryOf } from "./guardian.ts";

export interface LocalGuardianOptions {
  stateDir: string;
  log: Log;
  alive: (process: ProcessIdentity) => boolean;
  config: Pick<Config, "guardian" | "health">;
}

const RUNS_MAX = 200;

/** Reads only the log, so every process gives the same answers. */
export function createLocalGuardian({ stateDir, log, alive, config }: LocalGuardianOptions): GuardianVerbs {
  const settings = config.guardian;
  return {
    async status() {
      const station = await stationHealth(stateDir, { settings: config.health, alive });
      const { heads } = await log.heads({ prefix: runStream(""), open: true, limit: RUNS_MAX });
      const runs: GuardianStanding[] = [];
      for (const head of heads) {
        const reading = standingOf(log, { facts: toRunHead(head).facts, settings });
        const standing = await ignore(reading, "a run with a damaged log has no trajectory");
        if (standing != null) runs.push(standing);
      }
      return { running: station !== null && settings.watch !== "none", settings, runs };
    },
    async log(request = {}) {
      const { run, owner, limit } = parseRequest(ListDecisions, request, "a list of decisions");
      if (run !== undefined) return entriesOf((await headOfRun(log, await findRun(run, log))).facts).slice(0, limit);
      const where = owner === undefined ? undefined : { owner: [owner] };
      const { heads } = await log.heads({ prefix: runStream(""), terms: [GUARDED_TERM], limit, ...defined({ where }) });
      const entries = heads.flatMap((head) => entriesOf(toRunHead(head).facts));
      return entries.sort((one, other) => (one.at < other.at ? 1 : -1)).slice(0, limit);
    },
    async explain(word) {
      const run = await findRun(word, log);
      const { facts } = await headOfRun(log, run);
      const standing = await standingOf(log, { facts, settings });
      return { standing, ...(await historyOf(log, { run, isOver: facts.status === "ended" })) };
    },
  };
}

/** Sorted newest first. */
function entriesOf({ run, owner, agent, title, status, guardian }: RunFacts): GuardianLogEntry[] {
  const isOver = status === "ended";
  return guardian.decisions
    .map((each) => ({ ...each, run, owner, agent, title, effect: each.effect ?? (isOver ? ("ended" as const) : null) }))
    .reverse();
}

async function standingOf(log: Log, { facts, settings }: { facts: RunFacts; settings: GuardianConfig }): Promise<GuardianStanding> {
  const trajectory = await trajectoryOf(log, facts.run);
  const why = facts.status === "ended" ? "it has ended" : unwatchedBecause(trajectory, settings);
  const findings = shownFindings(trajectory, settings);
  const { seq: event, text } = trajectory.progress;
  return {
    run: facts.run,
    owner: facts.owner,
    agent: facts.agent,
    title: facts.title,
    watched: why === null,
    why,
    atMost: atMost(trajectory, settings),
    steps: trajectory.steps,
    idleSteps: idleSteps(trajectory),
    progress: { event, text },
    coherence: coherenceOf(trajectory, findings),
    findings,
    judge: facts.guardian.judge,
  };
}

type History = Omit<GuardianExplanation, "standing">;

async function historyOf(log: Log, { run, isOver }: { run: string; isOver: boolean }): Promise<History> {
  const history: History = { decisions: [], judgements: [] };
  for await (const page of readPages(log, runStream(run))) {
    for (const stored of page) {
      const event = stored.type.startsWith("guardian.") ? readableEvent(guardianEvents, stored) : null;
      if (event !== null) addToHistory(history, { ...event, seq: stored.seq });
    }
  }
  const decisions = history.decisions.map((each) => ({ ...each, effect: each.effect ?? (isOver ? ("ended" as const) : null) }));
  return { ...history, decisions };
}

function addToHistory({ decisions, judgements }: History, { seq: event, at, type, data }: GuardianEvent & { seq: number }): void {
  switch (type) {
    case "guardian.decided":
      decisions.push({ ...data, event, at, effect: null, effectText: null });
      return;
    case "guardian.settled": {
      const found = decisions.find(({ decision }) => decision === data.decision);
      if (found) Object.assign(found, { effect: data.effect, effectText: data.text });
      return;
    }
    case "guardian.judged":
      judgements.push({ event, at, model: data.model, coherence: data.coherence, text: data.text });
      return;
    default:
      data satisfies never;
  }
}
