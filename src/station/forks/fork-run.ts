import { exceededBudget, isTurnOver } from "../../agent/decide-step.ts";
import type { Model } from "../../agent/model/model.ts";
import { budgetsFromLeft } from "../../agent/run-budgets.ts";
import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChosenName, Labels } from "../../contract/ids.ts";
import { changedLabels } from "../../contract/label/change-labels.ts";
import { isStationLabel } from "../../contract/label/station-labels.ts";
import type { Budgets } from "../../contract/run/run.ts";
import type { ForkRun } from "../../contract/run/run-verbs.ts";
import { ownedBy } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { Resources } from "../../lib/resources.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { foldRun } from "../runs/owned-journal.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { refuseRewinding } from "../vocabulary/refuse-rewinding.ts";
import { createFork, type ForkCreation, removeFork } from "./create-fork.ts";
import { type ForkFilesOptions, planForkFiles } from "./fork-files.ts";
import { stepEnd } from "./step-end.ts";

export interface ForkRunOptions extends ForkCreation, ForkFilesOptions {
  sessions: ForkFilesOptions["sessions"];
  claimName: ClaimName;
  model: (name: string) => Promise<Model>;
}

/** The created forks, and whether they have something to do without another message. */
export interface CreatedForks {
  runs: string[];
  isReady: boolean;
}

/** Creates all requested forks of a run, or none. They wait until they are resumed. See `RunVerbs.fork`. */
export async function forkRun(run: string, request: ForkRun, options: ForkRunOptions): Promise<CreatedForks> {
  const { log } = options;
  const { facts } = await headOfRun(log, run);
  if (facts.parent !== null) {
    throw new CaissonError("invalid", `the run ${run} is part of ${facts.parent.run} and cannot be forked alone`, {
      hint: `Fork the whole: caisson fork ${facts.parent.run}`,
    });
  }
  refuseRewinding(facts);
  const end = await stepEnd(log, run, request.at);
  const { state } = await foldRun(log, run, { toSeq: end.seq });
  const isReady = request.text !== undefined || !isTurnOver(state);
  const model = request.model ?? state.model;
  const budgets = budgetsOfFork(state, request.budgets);
  // Fails here, before anything is created, if the forks could not work.
  if (isReady || request.model !== undefined) await options.model(model);
  if (isReady) checkBounds(run, { ...state, budgets });
  const files = await planForkFiles(run, end, options);
  const names = namesOf(request);
  const { owner, agent, definition } = state;
  await using claims = new Resources();
  for (const name of names) if (name !== undefined) claims.use(await options.claimName(name, { owner }));
  const created: string[] = [];
  try {
    for (const name of names) {
      const forked = {
        ...{ run: newId("run"), from: { run, ...end }, by: request.by, agent, model, budgets },
        ...attendance(request),
        ...ownedBy(owner),
        ...defined({ name, labels: labelsOf(facts.labels, request.labels) }),
      };
      created.push(await createFork({ forked, files, cleanup: definition.workspace.cleanup, ...defined({ text: request.text }) }, options));
    }
  } catch (error) {
    for (const fork of created) await removeFork(fork, options);
    throw error;
  }
  return { runs: created, isReady };
}

/** Returns what the run had left after the step. Requested limits are the fork's own, and replace that. */
function budgetsOfFork(state: RunState, { steps, ...requested }: Budgets): Budgets {
  const ofRun = state.budgets.steps;
  return { ...budgetsFromLeft(state), ...defined({ steps: steps === undefined ? ofRun : state.step + steps }), ...defined(requested) };
}

/** Throws `conflict` if the forks could not take a single step. What they may spend is their own, and never zero. */
function checkBounds(run: string, state: RunState): void {
  const reached = exceededBudget({ ...state, usage: { ...state.usage, inputTokens: 0, outputTokens: 0 }, costUsd: 0, workedMs: 0 });
  if (reached === null) return;
  throw new CaissonError("conflict", `a fork of ${run} could not work: ${reached.text.replace(/\.$/, "")}`, {
    hint: "Allow it more steps with --max-steps.",
    details: { budget: reached.budget },
  });
}

function namesOf({ name, count }: ForkRun): (string | undefined)[] {
  if (name === undefined || count === 1) return Array.from({ length: count }, () => name);
  return Array.from({ length: count }, (_, index) => parseRequest(ChosenName, `${name}-${index + 1}`, "a run's name"));
}

/** The labels that the station gave to a run say what that run is part of. A fork is not. */
function labelsOf(labels: Labels, requested: Labels): Labels | undefined {
  const own = Object.fromEntries(Object.entries(labels).filter(([key]) => !isStationLabel("run", key)));
  const all = Object.keys(requested).length === 0 ? own : changedLabels("run", own, requested);
  return Object.keys(all).length === 0 ? undefined : parseRequest(Labels, all, "labels");
}

function attendance({ attended, onAsk, onBudget }: ForkRun) {
  return { onAsk: onAsk ?? (attended ? "wait" : "deny"), onBudget: onBudget ?? (attended ? "ask" : "stop") } as const;
}
