import type { z } from "zod";
import type { StartMerge } from "../merge-verbs.ts";
import type { NetworkPolicy } from "../network.ts";
import type { OpenPreview } from "../network-verbs.ts";
import type { ContinueRun, RunSettings, StartRun } from "../run-verbs.ts";
import type { CreateSandbox } from "../sandbox-verbs.ts";
import type { WorkspaceSource } from "../session.ts";
import type { CreateSpec, ExecuteSpec, SpecRuns } from "../spec-verbs.ts";
import type { StartWorkflow } from "../workflow-verbs.ts";

/**
 * What of the station's machine a request names. A token that may only `run` gets sandboxes and runs of its own making;
 * the folders, variables, commands and private addresses of the machine are for `admin`. Every field is named here, so
 * that a new one is judged before it compiles.
 */
type Reach<Request> = { [Field in keyof Required<Request>]: (value: Exclude<Request[Field], undefined>) => readonly string[] };

const inside = () => [];
const folder = "a folder of the machine";

const ofMounts = (mounts: readonly unknown[]) => (mounts.length > 0 ? [folder] : []);
const ofRuntime = (runtime: string) => (runtime === "host" ? ["the runtime `host`, which isolates nothing"] : []);
/** By its name, one that is installed; a path is any program. */
const ofProgram = (program: string) => (program.includes("/") ? ["a program of the machine"] : []);
/** A path begins with `/`, `./` or `../`; all else is a reference. */
const ofImage = (reference: string) => (/^\.{0,2}\//.test(reference) ? ["an image in a folder of the machine"] : []);
const ofNetwork = (policy: NetworkPolicy) =>
  policy.mode !== "none" && policy.rules.some((rule) => rule.private) ? ["private addresses"] : [];
const ofSecrets = (secrets: object) =>
  Object.keys(secrets).length > 0 ? ["secrets that come from the machine's variables, files or commands"] : [];
const ofModel = (model: string) => (/^scripted:(?!demo$)/.test(model) ? ["a scripted model's file"] : []);

const ofAgentName = (name: string) => (/[/\\]|\.prompt$/.test(name) ? ["an agent's file"] : []);

function ofSource(source: WorkspaceSource): readonly string[] {
  if (source.kind === "folder") return [folder];
  if (source.kind === "upload") return [];
  const isPublic = source.kind === "empty" || (source.keyPath === undefined && /^https:/.test(source.url));
  return isPublic ? [] : ["a repository that is not fetched by HTTPS without a key"];
}

const spec: Reach<Omit<CreateSandbox["spec"], "keep">> = {
  template: (template) => (template.kind === "image" ? ofImage(template.reference) : []),
  workspace: ({ kind }) => (kind === "folder" ? [folder] : []),
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
  // They are the owner's or the station's own, for the hosts that were named with them.
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
  // They are the station's own, for the hosts that its configuration names.
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
  source: (source) => run.source(source),
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
