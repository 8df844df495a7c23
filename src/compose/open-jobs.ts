import { createHash } from "node:crypto";
import { resolveModel } from "../agent/model/resolve-model.ts";
import { defined } from "../lib/defined.ts";
import { idFrom } from "../lib/new-id.ts";
import { requestOutbound } from "../network/outbound/request-outbound.ts";
import { createBestKind } from "../station/best/best-kind.ts";
import { createBestWork, type ForkRun } from "../station/best/best-work.ts";
import { createLocalBests } from "../station/best/local-bests.ts";
import type { Driver } from "../station/durable/driver.ts";
import { createJobs } from "../station/durable/durable-verbs.ts";
import type { LocalStation } from "../station/local-station.ts";
import { createLocalMerges } from "../station/merges/local-merges.ts";
import { createMergeKind } from "../station/merges/merge-kind.ts";
import { mergeSessions } from "../station/merges/merge-sessions.ts";
import { createLocalShips } from "../station/pull-requests/local-ships.ts";
import { createShipKind } from "../station/pull-requests/ship-kind.ts";
import { createReach } from "../station/pull-requests/ship-reach.ts";
import { workOfSession } from "../station/sessions/changed-work.ts";
import { createLocalSpecs } from "../station/specs/local-specs.ts";
import type { SpecMerges } from "../station/specs/spec-effects.ts";
import { specKind } from "../station/specs/spec-kind.ts";
import { createAgentWork } from "../station/workflows/agent-work.ts";
import { cleanWorkspaces } from "../station/workflows/clean-workspaces.ts";
import { createCommandWork } from "../station/workflows/command-work.ts";
import { createExpressionThread } from "../station/workflows/expression-thread.ts";
import { createLocalWorkflows, createSubWorkflowWork } from "../station/workflows/local-workflows.ts";
import { createMergeWork } from "../station/workflows/merge-work.ts";
import { createSessionCommands } from "../station/workflows/session-commands.ts";
import { createWorkflowKind } from "../station/workflows/workflow-kind.ts";
import type { MergeVerbs } from "../verbs/merges.ts";
import type { SpecVerbs } from "../verbs/specs.ts";
import type { Station } from "../verbs/station.ts";
import { type LocalParts, modelOptions, secretsOf } from "./local-parts.ts";

/** What the kinds of durable jobs are built from. */
export interface JobParts {
  local: LocalStation;
  /** The other verbs, with the rights of the machine's own user. */
  station: Pick<Station, "runs" | "sessions" | "sandboxes" | "agents">;
  /** Starts the child jobs of a job. */
  driver: Pick<Driver, "drive">;
  settings: JobSettings;
}

/** Environment and configuration of durable jobs. */
export type JobSettings = Pick<LocalParts, "config" | "stateDir" | "path" | "say" | "variable">;

/** Opens every kind of durable job with its verbs. */
export function openJobs(parts: JobParts) {
  const merges = openMerges(parts);
  const specs = openSpecs(parts, merges.verbs);
  const bests = openBests(parts);
  return { merges, bests, specs, ships: openShips(parts, specs.verbs), workflows: openWorkflows(parts, merges.verbs) };
}

const jobsOptions = ({ local, driver, settings }: JobParts) => ({
  ...local.core,
  driver,
  openPerOwnerMax: settings.config.station.jobsPerOwnerMax,
});

function openMerges(parts: JobParts) {
  const { local, station } = parts;
  const kind = createMergeKind(mergeSessions({ ...local.sessionWork, station }));
  return { kind, verbs: createLocalMerges({ ...local.core, jobs: createJobs(kind, jobsOptions(parts)), station }) };
}

function openBests(parts: JobParts) {
  const { local, station, settings } = parts;
  const model = (name: string) => resolveModel(name, modelOptions(settings));
  const forkRun: ForkRun = async ({ run, step, send }, { model: named, labels, budgets }) => {
    const about = defined({ at: step ?? undefined, text: send ?? undefined, model: named });
    const [fork] = await station.runs.fork(run, { by: "best", labels: { ...labels }, budgets, ...about });
    if (fork === undefined) throw new Error("a fork of one run has one");
    return fork;
  };
  const kind = createBestKind(createBestWork({ ...local.core, ...local.sessionWork, runs: local.runs, station, model, forkRun }));
  const jobs = createJobs(kind, jobsOptions(parts));
  return { kind, verbs: createLocalBests({ jobs, station, checkModel: model }) };
}

function openSpecs(parts: JobParts, merges: MergeVerbs) {
  const { runs, sessions } = parts.station;
  const kind = specKind({ runs, sessions, merges: mergesOf(merges), now: Date.now });
  return { kind, verbs: createLocalSpecs({ ...parts.local.core, jobs: createJobs(kind, jobsOptions(parts)), runs }) };
}

/** A merge's id is derived from its key, so that it can be found again. */
function mergesOf(merges: MergeVerbs): SpecMerges {
  return {
    async start({ key, sessions, owner, parent, runs: { model } }) {
      const id = idFrom("mrg", createHash("sha256").update(key).digest());
      const request = { sessions: [...sessions], conflicts: "agent" as const, ...(model !== undefined && { model }) };
      return (await merges.start(request, { owner, id, parent })).id;
    },
    async result(merge) {
      const { result, text } = await merges.get(merge);
      return { session: result, text: text ?? "" };
    },
    cancel: async (merge, { by }) => void (await merges.cancel(merge, { by })),
    streamOf: (merge) => `merge/${merge}`,
  };
}

function openShips(parts: JobParts, specs: Pick<SpecVerbs, "get">) {
  const { local, station, settings } = parts;
  const { core } = local;
  const git = { path: settings.path };
  const secrets = (owner: string) => secretsOf(settings, owner);
  const reach = createReach({ git, locks: core, send: requestOutbound, now: Date.now, secretsOf: secrets });
  // Only the current files: earlier steps store no manifest.
  const filesAfter = async () => null;
  const workOf = async (session: string) => workOfSession(await core.sessions.get(session), { ...core, filesAfter });
  const kind = createShipKind({ stateDir: settings.stateDir, git, reach, workOf, now: () => new Date() });
  const verbs = createLocalShips(createJobs(kind, jobsOptions(parts)), {
    runs: station.runs,
    sessions: station.sessions,
    specs,
    secretsOf: secrets,
    author: settings.config.author,
  });
  return { kind, verbs };
}

function openWorkflows(parts: JobParts, merges: MergeVerbs) {
  const { local, station } = parts;
  const expressions = createExpressionThread();
  const commands = createCommandWork({ ...station, inSession: createSessionCommands(local.core) });
  const kind = createWorkflowKind({
    evaluator: expressions.evaluate,
    agent: createAgentWork(station),
    workflow: createSubWorkflowWork(() => jobs, expressions.evaluate),
    merge: createMergeWork({ merges, sessions: station.sessions }),
    command: commands.command,
    async clean(effect, context) {
      const sandboxes = await commands.clean(context);
      const sessions = await cleanWorkspaces(effect, context, { ...local.core, runs: station.runs, merges });
      return { sandboxes, ...(sessions.length > 0 && { sessions }) };
    },
  });
  const jobs = createJobs(kind, jobsOptions(parts));
  return {
    kind,
    verbs: createLocalWorkflows(jobs, expressions),
    [Symbol.asyncDispose]: () => expressions[Symbol.asyncDispose](),
  };
}
