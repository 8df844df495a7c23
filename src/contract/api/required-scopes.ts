import type { z } from "zod";
import type { AttemptRun, StartBest } from "../best/best-verbs.ts";
import { parseAgentReference, parseShipRemote } from "../machine/machine-names.ts";
import type { StartMerge } from "../merge/merge-verbs.ts";
import { parseModelName } from "../model/model-name.ts";
import type { NetworkPolicy } from "../network/network.ts";
import type { OpenPreview } from "../network/network-verbs.ts";
import type { ContinueRun, ForkRun, RunSettings, StartRun } from "../run/run-verbs.ts";
import {
  collectReach,
  collectReachByKind,
  folderReach,
  type ReachByKind,
  type ReachOfFields,
  reachOfImage,
  reachOfPolicy,
  reachOfRuntime,
  staysInside,
} from "../sandbox/field-reach.ts";
import type { Template, WorkspaceMount } from "../sandbox/sandbox.ts";
import { reachOfFields } from "../sandbox/sandbox-fields.ts";
import type { CreateSandbox } from "../sandbox/sandbox-verbs.ts";
import { gitPlace, parseGitAddress } from "../session/git-address.ts";
import type { WorkspaceSource } from "../session/session.ts";
import type { StartShip } from "../ship/ship-verbs.ts";
import type { CreateSpec, ExecuteSpec, SpecRuns } from "../spec/spec-verbs.ts";
import type { BuildTemplate, ImportTemplate } from "../template/template-verbs.ts";
import type { CreateWebhook } from "../webhook/webhook-verbs.ts";
import type { StartWorkflow } from "../workflow/workflow-verbs.ts";

/**
 * Lists the parts of the station's machine that a request names. A token with the scope `run` may only use the
 * sandboxes and runs it creates; the machine's folders, variables, commands and private addresses need `admin`. Every
 * field must be in these tables or in those of a sandbox, so a new one does not compile until it is judged.
 */

/** Anything else that is not a model name is rejected by the code that uses it. */
const ofModel = (model: string) => (parseModelName(model)?.kind === "script" ? ["a scripted model's file"] : []);
const ofAgentName = (name: string) => (parseAgentReference(name).kind === "name" ? [] : ["an agent's file"]);

const notHttps = "a repository that is not fetched by HTTPS without a key";
const source: ReachByKind<WorkspaceSource> = {
  empty: {},
  folder: { path: () => [folderReach], hiding: staysInside },
  // The owner is checked when the upload is resolved.
  upload: { upload: staysInside, origin: staysInside },
  git: {
    url: (url) => (parseGitAddress(url)?.scheme === "https" ? [] : [notHttps]),
    branch: staysInside,
    ref: staysInside,
    depth: staysInside,
    submodules: staysInside,
    submodulesFrom: (places) => (places.every((place) => gitPlace(place)?.scheme === "https") ? [] : ["submodules from other than HTTPS"]),
    keyPath: () => [notHttps],
  },
};
const ofSource = (value: WorkspaceSource) => collectReachByKind(source, value);

const template: ReachByKind<Template> = { host: {}, image: { reference: reachOfImage }, snapshot: { id: staysInside } };
const workspace: ReachByKind<WorkspaceMount> = {
  empty: {},
  folder: { path: () => [folderReach], access: staysInside, layer: () => [folderReach], view: () => [folderReach], origin: staysInside },
};

const config: ReachOfFields<Omit<CreateSandbox["spec"], "keep">> = {
  ...reachOfFields,
  template: (value) => collectReachByKind(template, value),
  workspace: (value) => collectReachByKind(workspace, value),
  labels: staysInside,
  name: staysInside,
};

const sandbox: ReachOfFields<KeptSandbox> = {
  runtime: reachOfRuntime,
  spec: (value) => collectReach(config, value),
  snapshot: staysInside,
  template: staysInside,
  // Names are resolved among the secrets that the owner may use.
  secretNames: staysInside,
  guard: () => [folderReach],
  uploaded: staysInside,
  uploadedMounts: staysInside,
};

const settings: ReachOfFields<RunSettings> = {
  ...reachOfFields,
  uploadedMounts: staysInside,
  maxSteps: staysInside,
  timeoutMs: staysInside,
  onAsk: staysInside,
  onBudget: staysInside,
  permissions: staysInside,
  guardian: staysInside,
};

const run: ReachOfFields<StartRun> = {
  task: staysInside,
  traceparent: staysInside,
  name: staysInside,
  labels: staysInside,
  agent: (agent) => (typeof agent !== "string" ? ["an agent's whole definition"] : ofAgentName(agent)),
  trustAgentFile: (trusted) => (trusted ? ["trust in an agent's file"] : []),
  input: staysInside,
  model: ofModel,
  record: () => ["a file for a model's answers"],
  replay: () => ["a file for a model's answers"],
  session: staysInside,
  cleanup: staysInside,
  // The owner is checked when the session is resolved.
  from: staysInside,
  source: ofSource,
  sourceNamed: staysInside,
  budgets: staysInside,
  settings: (value) => collectReach(settings, value),
  attended: staysInside,
  detached: staysInside,
  priority: staysInside,
  startAt: staysInside,
};

const best: ReachOfFields<z.output<typeof StartBest>> = {
  start: (value) => (value === undefined ? [] : collectReach<AttemptRun>(run, value)),
  // The owner is checked when the run is resolved.
  run: staysInside,
  attempts: staysInside,
  models: (models) => [...new Set(models.flatMap(ofModel))],
  grade: staysInside,
  gradeTimeoutMs: staysInside,
  judge: ofModel,
  concurrency: staysInside,
  budgets: staysInside,
};

const workflow: ReachOfFields<StartWorkflow> = {
  definition: (definition) => [...new Set(ofAgentSteps(definition))],
  input: staysInside,
  source: ofSource,
  model: ofModel,
  cleanup: staysInside,
  schedule: staysInside,
};

/** Checks every agent and model in a definition, at any depth: steps name them as runs do. */
function ofAgentSteps(value: unknown): string[] {
  const reaches: string[] = [];
  for (let level: unknown[] = [value]; level.length > 0; ) {
    const objects = level.filter((each): each is Record<string, unknown> => each !== null && typeof each === "object");
    for (const { agent, model } of objects) {
      if (typeof agent === "string") reaches.push(...ofAgentName(agent));
      if (typeof model === "string") reaches.push(...ofModel(model));
    }
    level = objects.flatMap((each) => Object.values(each));
  }
  return reaches;
}

const continued: ReachOfFields<Omit<ContinueRun, "by">> = {
  text: staysInside,
  model: ofModel,
  budgets: staysInside,
  attended: staysInside,
  onAsk: staysInside,
  onBudget: staysInside,
  detached: staysInside,
};

const forked: ReachOfFields<Omit<ForkRun, "by">> = {
  at: staysInside,
  count: staysInside,
  text: staysInside,
  model: ofModel,
  name: staysInside,
  labels: staysInside,
  budgets: staysInside,
  attended: staysInside,
  onAsk: staysInside,
  onBudget: staysInside,
  detached: staysInside,
};

const specRuns: ReachOfFields<SpecRuns> = {
  model: ofModel,
  planner: ofAgentName,
  coder: ofAgentName,
  phaseAgents: (agents) => [...new Set(Object.values(agents).flatMap(ofAgentName))],
  settings: (value) => collectReach(settings, value),
  budgets: staysInside,
};

const writtenSpec: ReachOfFields<CreateSpec> = {
  idea: staysInside,
  name: staysInside,
  source: ofSource,
  gates: staysInside,
  runs: (value) => collectReach(specRuns, value),
  parallel: staysInside,
};

const executedSpec: ReachOfFields<Omit<z.output<typeof ExecuteSpec>, "by">> = { from: staysInside, until: staysInside, source: ofSource };

const merge: ReachOfFields<z.output<typeof StartMerge>> = {
  // The owner is checked when the sessions are resolved.
  sessions: staysInside,
  conflicts: staysInside,
  agent: ofAgentName,
  model: ofModel,
  name: staysInside,
};

const ship: ReachOfFields<z.output<typeof StartShip>> = {
  // The owner is checked when the work is resolved.
  of: staysInside,
  to: (to) => (parseShipRemote(to)?.kind === "address" ? [] : ["a repository of its machine"]),
  forge: staysInside,
  into: staysInside,
  // One of the owner's secrets.
  token: staysInside,
  allowPrivate: (allowed) => (allowed ? ["private addresses"] : []),
  kind: staysInside,
  ticket: staysInside,
  title: staysInside,
  body: staysInside,
  merge: staysInside,
  tests: staysInside,
  withoutTests: staysInside,
  includeConfiguration: staysInside,
  leaveOut: staysInside,
};

const webhook: ReachOfFields<z.output<typeof CreateWebhook>> = {
  name: staysInside,
  // Each delivery checks whether the address is allowed.
  url: staysInside,
  events: staysInside,
  allowPrivate: (allowed) => (allowed ? ["private addresses"] : []),
};

const preview: ReachOfFields<OpenPreview> = {
  port: staysInside,
  listenPort: () => ["a specific port of the machine"],
};

const builtTemplate: ReachOfFields<z.output<typeof BuildTemplate>> = {
  name: staysInside,
  context: () => [folderReach],
  // The owner is checked when the upload is resolved.
  uploaded: staysInside,
  file: staysInside,
  dockerfile: staysInside,
  debian: () => ["an image of the station's machine"],
  target: staysInside,
  args: staysInside,
  images: (images) => [...new Set(Object.values(images).flatMap(reachOfImage))],
  network: reachOfPolicy,
  hiding: staysInside,
  limits: staysInside,
  noCache: staysInside,
  runtime: reachOfRuntime,
};

const importedTemplate: ReachOfFields<z.output<typeof ImportTemplate>> = {
  name: staysInside,
  image: reachOfImage,
  runtime: reachOfRuntime,
};

type KeptSandbox = Omit<CreateSandbox, "spec"> & { spec: Omit<CreateSandbox["spec"], "keep"> };

export const reachOfSandbox = (request: KeptSandbox): string[] => collectReach(sandbox, request);
/** Ignores `keep`, which does not affect what the sandbox can reach. */
export const reachOfHeld = ({ spec: { keep: _, ...sandboxConfig }, ...request }: CreateSandbox): string[] =>
  reachOfSandbox({ ...request, spec: sandboxConfig });
export const reachOfRun = (request: StartRun): string[] => collectReach(run, request);
export const reachOfWorkflow = (request: StartWorkflow): string[] => collectReach(workflow, request);
export const reachOfContinued = (request: Omit<ContinueRun, "by">): string[] => collectReach(continued, request);
export const reachOfForked = (request: Omit<ForkRun, "by">): string[] => collectReach(forked, request);

export const reachOfSpec = (request: CreateSpec): string[] => collectReach(writtenSpec, request);
export const reachOfExecuted = (request: Omit<z.output<typeof ExecuteSpec>, "by">): string[] => collectReach(executedSpec, request);
export const reachOfBest = (request: z.output<typeof StartBest>): string[] => collectReach(best, request);
export const reachOfMerge = (request: z.output<typeof StartMerge>): string[] => collectReach(merge, request);

export const reachOfShip = (request: z.output<typeof StartShip>): string[] => collectReach(ship, request);
export const reachOfWebhook = (request: z.output<typeof CreateWebhook>): string[] => collectReach(webhook, request);

export const reachOfBuild = (request: z.output<typeof BuildTemplate>): string[] => collectReach(builtTemplate, request);
export const reachOfImport = (request: z.output<typeof ImportTemplate>): string[] => collectReach(importedTemplate, request);

export const reachOfNetworkChange = ({ policy }: { policy: NetworkPolicy }): readonly string[] => reachOfPolicy(policy);
export const reachOfPreview = (request: OpenPreview): string[] => collectReach(preview, request);
export const reachOfAgent = ({ name }: { name: string }): string[] => ofAgentName(name);
export const reachOfDoctor = (_body: undefined, { model }: { model?: string | undefined }): readonly string[] =>
  model === undefined ? [] : ofModel(model);
