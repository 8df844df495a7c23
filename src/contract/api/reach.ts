import type { z } from "zod";
import { gitPlace, parseGitAddress } from "../git-address.ts";
import { parseImageReference } from "../image-reference.ts";
import { parseAgentReference, parseOciRuntime, parseShipRemote } from "../machine-names.ts";
import type { StartMerge } from "../merge-verbs.ts";
import { parseModelName } from "../model-name.ts";
import type { NetworkPolicy, NetworkRule } from "../network.ts";
import type { OpenPreview } from "../network-verbs.ts";
import type { ContinueRun, RunSettings, StartRun } from "../run-verbs.ts";
import type { Template, WorkspaceMount } from "../sandbox.ts";
import type { CreateSandbox } from "../sandbox-verbs.ts";
import type { WorkspaceSource } from "../session.ts";
import type { StartShip } from "../ship-verbs.ts";
import type { CreateSpec, ExecuteSpec, SpecRuns } from "../spec-verbs.ts";
import type { CreateWebhook } from "../webhook-verbs.ts";
import type { StartWorkflow } from "../workflow-verbs.ts";

/**
 * What of the station's machine a request names. A token that may only `run` gets sandboxes and runs of its own making;
 * the folders, variables, commands and private addresses of the machine are for `admin`. Every field is named here, so
 * that a new one does not compile before it is judged. A text is read by the function that the acting code uses, and
 * passes by the kind of thing that it turns out to be: what passes is listed, not what is refused.
 */
type Reach<Request> = { [Field in keyof Required<Request>]: (value: Exclude<Request[Field], undefined>) => readonly string[] };
/** The same for each kind of a union. */
type ReachByKind<Union extends { kind: string }> = {
  [Kind in Union["kind"]]: Reach<Omit<Extract<Union, { kind: Kind }>, "kind">>;
};

const inside = () => [];
const folder = "a folder of the machine";

const ofMounts = (mounts: readonly unknown[]) => (mounts.length > 0 ? [folder] : []);
const isolating: ReadonlySet<string> = new Set(["auto", "oci", "docker", "fake"]);
const ofRuntime = (runtime: string) => {
  if (isolating.has(runtime)) return [];
  return [runtime === "host" ? "the runtime `host`, which isolates nothing" : "a runtime that is not known to isolate"];
};
const ofProgram = (program: string) => (parseOciRuntime(program)?.kind === "name" ? [] : ["a program of the machine"]);
/** Images built here have names like those of registries, and come first. */
const ofImage = (reference: string) =>
  parseImageReference(reference)?.kind === "registry" ? [] : ["an image that is not a name in a registry"];
const ofSecrets = (secrets: object) =>
  Object.keys(secrets).length > 0 ? ["secrets that come from the machine's variables, files or commands"] : [];
/** The acting code refuses what is not a name of a model. */
const ofModel = (model: string) => (parseModelName(model)?.kind === "script" ? ["a scripted model's file"] : []);
const ofAgentName = (name: string) => (parseAgentReference(name).kind === "name" ? [] : ["an agent's file"]);

const rule: Reach<NetworkRule> = {
  host: inside,
  ports: inside,
  methods: inside,
  paths: inside,
  private: (isPrivate) => (isPrivate ? ["private addresses"] : []),
};
const ofNetwork = (policy: NetworkPolicy) =>
  policy.mode === "none" ? [] : [...new Set(policy.rules.flatMap((each) => reached(rule, each)))];

const notHttps = "a repository that is not fetched by HTTPS without a key";
const source: ReachByKind<WorkspaceSource> = {
  empty: {},
  folder: { path: () => [folder], hiding: inside },
  // Whose it is, is asked where it is found.
  upload: { upload: inside, origin: inside },
  git: {
    url: (url) => (parseGitAddress(url)?.scheme === "https" ? [] : [notHttps]),
    branch: inside,
    ref: inside,
    depth: inside,
    submodules: inside,
    submodulesFrom: (places) => (places.every((place) => gitPlace(place)?.scheme === "https") ? [] : ["submodules from other than HTTPS"]),
    keyPath: () => [notHttps],
  },
};
const ofSource = (given: WorkspaceSource) => reachedByKind(source, given);

const template: ReachByKind<Template> = { host: {}, image: { reference: ofImage }, snapshot: { id: inside } };
const workspace: ReachByKind<WorkspaceMount> = {
  empty: {},
  folder: { path: () => [folder], access: inside, layer: () => [folder], origin: inside },
};

const spec: Reach<Omit<CreateSandbox["spec"], "keep">> = {
  template: (given) => reachedByKind(template, given),
  workspace: (given) => reachedByKind(workspace, given),
  mounts: ofMounts,
  limits: inside,
  network: ofNetwork,
  secrets: ofSecrets,
  gateway: inside,
  stationAccess: inside,
  env: inside,
  allowRoot: inside,
  readOnlyPaths: inside,
  deniedPaths: inside,
  tmpBytes: inside,
  labels: inside,
  name: inside,
};

const sandbox: Reach<KeptSandbox> = {
  runtime: ofRuntime,
  spec: (given) => reached(spec, given),
  snapshot: inside,
  // Those that the owner may use are asked for where a name is resolved.
  secretNames: inside,
  guard: () => [folder],
  uploaded: inside,
  uploadedMounts: inside,
};

const settings: Reach<RunSettings> = {
  runtime: ofRuntime,
  ociRuntime: ofProgram,
  snapshot: inside,
  env: inside,
  allowRoot: inside,
  mounts: ofMounts,
  uploadedMounts: inside,
  mountGuard: inside,
  image: ofImage,
  limits: inside,
  network: ofNetwork,
  secrets: ofSecrets,
  // As for a sandbox.
  secretNames: inside,
  gateway: inside,
  stationAccess: inside,
  maxSteps: inside,
  timeoutMs: inside,
  onAsk: inside,
  onBudget: inside,
  permissions: inside,
  guardian: inside,
};

const run: Reach<StartRun> = {
  task: inside,
  traceparent: inside,
  name: inside,
  labels: inside,
  agent: (agent) => (typeof agent !== "string" ? ["an agent's whole definition"] : ofAgentName(agent)),
  trustAgentFile: (trusted) => (trusted ? ["trust in an agent's file"] : []),
  input: inside,
  model: ofModel,
  record: () => ["a file for a model's answers"],
  replay: () => ["a file for a model's answers"],
  session: inside,
  // Whose it is, is asked where it is found.
  from: inside,
  source: ofSource,
  sourceNamed: inside,
  budgets: inside,
  settings: (given) => reached(settings, given),
  attended: inside,
  detached: inside,
  priority: inside,
  startAt: inside,
};

const workflow: Reach<StartWorkflow> = {
  definition: (definition) => [...new Set(ofAgentSteps(definition))],
  input: inside,
  source: ofSource,
  model: ofModel,
  schedule: inside,
};

/** Wherever they are in it: a step names an agent and a model as a run does. */
function ofAgentSteps(value: unknown): string[] {
  const found: string[] = [];
  for (let level: unknown[] = [value]; level.length > 0; ) {
    const objects = level.filter((each): each is Record<string, unknown> => each !== null && typeof each === "object");
    for (const { agent, model } of objects) {
      if (typeof agent === "string") found.push(...ofAgentName(agent));
      if (typeof model === "string") found.push(...ofModel(model));
    }
    level = objects.flatMap((each) => Object.values(each));
  }
  return found;
}

const continued: Reach<Omit<ContinueRun, "by">> = {
  text: inside,
  model: ofModel,
  budgets: inside,
  attended: inside,
  onAsk: inside,
  onBudget: inside,
  detached: inside,
};

const specRuns: Reach<SpecRuns> = {
  model: ofModel,
  planner: ofAgentName,
  coder: ofAgentName,
  phaseAgents: (agents) => [...new Set(Object.values(agents).flatMap(ofAgentName))],
  settings: (given) => reached(settings, given),
  budgets: inside,
};

const writtenSpec: Reach<CreateSpec> = {
  idea: inside,
  name: inside,
  source: ofSource,
  gates: inside,
  runs: (given) => reached(specRuns, given),
  parallel: inside,
};

const executedSpec: Reach<Omit<z.output<typeof ExecuteSpec>, "by">> = { from: inside, until: inside, source: ofSource };

const merge: Reach<z.output<typeof StartMerge>> = {
  // Whose they are, is asked where they are found.
  sessions: inside,
  conflicts: inside,
  agent: ofAgentName,
  model: ofModel,
  name: inside,
};

const ship: Reach<z.output<typeof StartShip>> = {
  // Whose it is, is asked where it is found.
  of: inside,
  to: (to) => (parseShipRemote(to)?.kind === "address" ? [] : ["a repository of its machine"]),
  forge: inside,
  into: inside,
  // Of the owner's secrets.
  token: inside,
  allowPrivate: (allowed) => (allowed ? ["private addresses"] : []),
  kind: inside,
  ticket: inside,
  title: inside,
  body: inside,
  merge: inside,
  tests: inside,
  withoutTests: inside,
  includeConfiguration: inside,
  leaveOut: inside,
};

const webhook: Reach<z.output<typeof CreateWebhook>> = {
  name: inside,
  // Each delivery asks whether its address may be reached.
  url: inside,
  events: inside,
  allowPrivate: (allowed) => (allowed ? ["private addresses"] : []),
};

const preview: Reach<OpenPreview> = {
  port: inside,
  listenPort: () => ["a certain port of the machine"],
};

type KeptSandbox = Omit<CreateSandbox, "spec"> & { spec: Omit<CreateSandbox["spec"], "keep"> };

export const reachOfSandbox = (request: KeptSandbox): string[] => reached(sandbox, request);
/** Whether it is kept reaches nothing. */
export const reachOfHeld = ({ spec: { keep: _, ...spec }, ...request }: CreateSandbox): string[] => reachOfSandbox({ ...request, spec });
export const reachOfRun = (request: StartRun): string[] => reached(run, request);
export const reachOfWorkflow = (request: StartWorkflow): string[] => reached(workflow, request);
export const reachOfContinued = (request: Omit<ContinueRun, "by">): string[] => reached(continued, request);

export const reachOfSpec = (request: CreateSpec): string[] => reached(writtenSpec, request);
export const reachOfExecuted = (request: Omit<z.output<typeof ExecuteSpec>, "by">): string[] => reached(executedSpec, request);
export const reachOfMerge = (request: z.output<typeof StartMerge>): string[] => reached(merge, request);

export const reachOfShip = (request: z.output<typeof StartShip>): string[] => reached(ship, request);
export const reachOfWebhook = (request: z.output<typeof CreateWebhook>): string[] => reached(webhook, request);

export const reachOfNetworkChange = ({ policy }: { policy: NetworkPolicy }): string[] => ofNetwork(policy);
export const reachOfPreview = (request: OpenPreview): string[] => reached(preview, request);
export const reachOfAgent = ({ name }: { name: string }): string[] => ofAgentName(name);
export const reachOfDoctor = (_body: undefined, { model }: { model?: string | undefined }): readonly string[] =>
  model === undefined ? [] : ofModel(model);

function reached<Request extends object>(table: Reach<Request>, request: Request): string[] {
  const judges = table as Readonly<Record<string, (value: unknown) => readonly string[]>>;
  return Object.entries(request).flatMap(([field, value]) =>
    value === undefined ? [] : (judges[field]?.(value) ?? [`the field ${field}`]),
  );
}

function reachedByKind<Union extends { kind: string }>(tables: ReachByKind<Union>, request: Union): string[] {
  const { kind, ...fields } = request;
  const table = (tables as Readonly<Record<string, Reach<typeof fields>>>)[kind];
  return table === undefined ? [`the kind ${kind}`] : [...new Set(reached(table, fields))];
}
