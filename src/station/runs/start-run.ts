import type { Model } from "../../agent/model/model.ts";
import { joinedFloor, permissionFloor, permissionRules } from "../../agent/permissions.ts";
import type { AgentSource } from "../../agent/rights/agent-source.ts";
import { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SnapshotId } from "../../contract/ids.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { StartRun } from "../../contract/run/run-verbs.ts";
import { fieldOptions, mergeFields, sandboxSettings } from "../../contract/sandbox/sandbox-field-options.ts";
import type { FolderMount, LimitsRequest, SandboxField } from "../../contract/sandbox/sandbox-fields.ts";
import { absoluteSecrets } from "../../contract/secret/absolute-secrets.ts";
import { withSecretHosts } from "../../contract/secret/secret-hosts.ts";
import { parseGitPlace } from "../../contract/session/git-address.ts";
import type { Session } from "../../contract/session/session.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { checkAddress } from "../../workspace/git/address.ts";
import { checkFolder, type SessionStore } from "../../workspace/sessions.ts";
import { refuseWrongPlace } from "../../workspace/wrong-place.ts";
import { checkAgent } from "../agents/check-agent.ts";
import { withSubAgents } from "../agents/sub-agents.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { checkedMounts } from "../sandboxes/guard-workspace.ts";
import { namedSecrets, withNamedSecrets } from "../secrets/with-secrets.ts";
import type { SessionCreation } from "../sessions/create-session.ts";
import type { PlannedFork } from "../sessions/fork-session.ts";
import { changeCleanup } from "../sessions/session-cleanup.ts";
import { createRunInNewSession } from "./new-run.ts";
import type { NewQueued, Runs } from "./runs.ts";
import { startFromTemplate } from "./start-template.ts";

/** The file that model output is recorded to or replayed from. */
export interface ModelTape {
  record?: string;
  replay?: string;
}

export interface StartRunOptions extends SessionCreation {
  sessions: SessionStore;
  runs: Runs;
  crashpoint: (name: string) => void;
  agents: AgentSource;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** The model to use if the request names none. */
  defaultModel: string | undefined;
  /**
   * Returns the default model of the only provider with a key. Used if neither the request nor a setting names a model.
   */
  keyedModel: () => string | undefined;
  /** The default limits of a sandbox. */
  limits: LimitsRequest;
  /** Returns the secrets that an owner may name: its own, and those in the station's configuration. */
  secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretConfig>>>;
  /** The folder that relative paths in the user's own agent files refer to. */
  cwd: string;
  /** The user's home folder. */
  home: string;
  /** Returns the id of the snapshot that a word names. Throws `invalid`, `not_found`. */
  findSnapshot: (word: string) => Promise<SnapshotId>;
  stateDir: string;
  /** Returns the folder with an upload's files. Throws `not_found`. */
  treeOfUpload: (upload: string, options: { owner: string }) => Promise<string>;
  /** Throws `denied` for the URL of a repository that must not be fetched for this owner. */
  checkFetched?: ((url: string, owner: string) => Promise<void>) | undefined;
  /** Claims a name, so that no other process can assign it. Throws `exists`, `conflict`. */
  claimName: ClaimName;
  /** Plans a session with the files of another. Throws `not_found`, `unsupported`. */
  planFork: (from: NonNullable<StartRun["from"]>) => Promise<PlannedFork>;
}

/** For a run that a station should drive. */
export interface Queueing {
  queued: NewQueued;
  /** Throws `invalid` for limits that no sandbox could ever have. */
  checkLimits: (limits: LimitsRequest) => void;
}

/**
 * Creates the requested run in the named session or a new one. If this process dies on the way, nothing is left behind.
 */
export async function createRequestedRun(
  request: StartRun,
  options: StartRunOptions & { owner: string },
  queueing?: Queueing,
): Promise<string> {
  if (request.source !== undefined && request.from !== undefined)
    throw new CaissonError("invalid", "a run starts with the files of another session or with a source, not with both");
  if (request.source?.kind === "folder" && !request.sourceNamed) refuseWrongPlace(request.source.path, { places: options, option: "repo" });
  const nameable = await options.secretsOf(options.owner);
  const secrets = { ...namedSecrets(request.settings.secretNames, nameable), ...request.settings.secrets };
  const file = await definitionOf(request, { secrets, nameable }, options);
  const agent = await withSettings(file, request, { ...options, secrets });
  refuseBeyondMachine(agent.sandbox.limits);
  queueing?.checkLimits(agent.sandbox.limits);
  const model = request.model ?? options.defaultModel ?? agent.model ?? options.keyedModel();
  if (model === undefined) throw noModel();
  // Fails here, before anything is created, if a model cannot be used or the agent refers to something that does not
  // exist.
  const find = (name: string) => options.agents.load(name, { secrets: nameable });
  const checked = await checkAgent({ ...agent, model }, { find, checkModel: (name) => options.model(name, tapeOf(request)) });
  const definition = { ...agent, subAgents: checked.subAgents };
  const known = await knownSession(request, options);
  // A session and all its runs have the same owner.
  const owner = known?.owner ?? options.owner;
  const { task, budgets, labels, name } = request;
  const driver = queueing !== undefined ? "station" : request.detached ? "detached" : undefined;
  const own = defined({ name, traceparent: request.traceparent, driver, queued: queueing?.queued } as const);
  const run = { id: newId("run"), definition, task, model, budgets, owner, labels, ...own };
  checkScope(definition, known?.scope ?? request.session?.scope ?? "run");
  const newSession = known ? undefined : request.session?.id;
  await using _session =
    newSession === undefined ? null : await options.claimName(parseRequest(ChosenName, newSession, "a session's name"), { owner });
  await using _run = request.name === undefined || request.name === newSession ? null : await options.claimName(request.name, { owner });
  const uploads = request.settings.uploadedMounts.map(({ upload }) => upload);
  if (known) {
    if (uploads.length > 0) await options.sessions.update(known.id, { uploads: [...new Set([...known.uploads, ...uploads])] });
    await options.runs.create({ ...run, session: known.id });
    // Only now: without an open run in it, the session might go at once.
    await changeCleanup(known, request.cleanup, options);
    return run.id;
  }
  const about = { cleanup: cleanupOf(definition, request), owner, ...newSessionOf(request, { run: run.id, owner }) };
  if (request.from !== undefined) {
    const { session, fill } = await options.planFork(request.from);
    return await createRunInNewSession(options, {
      run,
      session: { ...session, uploads: [...new Set([...(session.uploads ?? []), ...uploads])], ...about },
      fill,
    });
  }
  const source = request.source ?? { kind: "empty" as const };
  await checkSource(source, options);
  return await createRunInNewSession(options, { run, session: { source, uploads, ...about } });
}

/**
 * Returns when a new session goes. What an agent's file says counts for the scope that the file has: one that lets the
 * workspace of each run go does not mean the session that its user named to keep it.
 */
function cleanupOf({ workspace }: AgentDefinition, { cleanup, session }: StartRun): Session["cleanup"] {
  if (cleanup !== undefined) return cleanup;
  return workspace.scope === (session?.scope ?? "run") ? workspace.cleanup : "never";
}

/** Returns the new session's id and scope. A session without a name gets the id of its run. */
function newSessionOf({ session }: StartRun, { run, owner }: { run: string; owner: string }): Pick<Session, "id" | "scope" | "name"> {
  if (session === undefined) return { id: run, scope: "run" };
  const id = sessionIdOf(session.id, owner);
  return { id, scope: session.scope, ...(id !== session.id && { name: session.id }) };
}

export function tapeOf({ record, replay }: Pick<StartRun, "record" | "replay">): ModelTape {
  return defined({ record, replay });
}

async function definitionOf(
  request: StartRun,
  { secrets, nameable }: { secrets: Readonly<Record<string, SecretConfig>>; nameable: Readonly<Record<string, SecretConfig>> | null },
  options: Pick<StartRunOptions, "agents" | "defaultModel">,
): Promise<AgentDefinition> {
  const { agent, input, trustAgentFile: isTrusted } = request;
  if (typeof agent !== "string") return nameable === null ? agent : withNamedSecrets(agent, { given: secrets, nameable });
  return await options.agents.load(agent, {
    input,
    isTrusted,
    overrides: overriddenSettings(request, secrets, options),
    secrets: nameable,
  });
}

/**
 * Returns the request's agent, with the sub-agents from the caller's files, for a remote station. The station looks up
 * the named secrets, unless `nameable` is given. Throws the same errors as starting the run.
 */
export async function loadRequestedAgent(
  request: StartRun,
  options: Pick<StartRunOptions, "agents" | "defaultModel"> & { nameable: Readonly<Record<string, SecretConfig>> | null },
): Promise<AgentDefinition> {
  const { nameable } = options;
  const { secretNames, secrets: own } = request.settings;
  const secrets = { ...(nameable && namedSecrets(secretNames, nameable)), ...own };
  const definition = await definitionOf(request, { secrets, nameable }, options);
  return withSubAgents(definition, (name) => options.agents.load(name, { secrets: nameable }));
}

/**
 * Returns the agent settings that the request or the station's configuration overrides: the file's values are not used,
 * so they need no trust.
 */
function overriddenSettings(
  { settings, model }: StartRun,
  secrets: Readonly<Record<string, SecretConfig>>,
  { defaultModel }: Pick<StartRunOptions, "defaultModel">,
): Set<string> {
  const { image, snapshot, template, maxSteps, timeoutMs, guardian } = settings;
  const overrides: Record<string, unknown> = {
    "sandbox.image": image ?? snapshot ?? template,
    "sandbox.template": template ?? image ?? snapshot,
    "sandbox.network": withSecretHosts(settings.network, secrets),
    "harness.timeoutMs": timeoutMs,
    "harness.maxSteps": maxSteps,
    guardian,
    model: model ?? defaultModel,
  };
  const names = Object.keys(secrets).flatMap((name) => [`sandbox.secrets.${name}`, `sandbox.secretNames.${name}`]);
  return new Set([...overriddenFields(settings), ...Object.keys(defined(overrides)), ...names]);
}

/** Returns the overridden sandbox fields. In fields whose entries are merged, the file's other entries still count. */
function overriddenFields(settings: StartRun["settings"]): string[] {
  return Object.entries(sandboxSettings(settings)).flatMap(([name, value]: [string, unknown]) => {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) return [];
    if (fieldOptions[name as SandboxField].merge !== "entries") return [`sandbox.${name}`];
    return Array.isArray(value) ? [] : Object.keys(value as object).map((key) => `sandbox.${name}.${key}`);
  });
}

async function withSettings(
  definition: AgentDefinition,
  { settings, attended }: StartRun,
  options: Pick<StartRunOptions, "limits" | "cwd" | "home" | "stateDir" | "findSnapshot" | "treeOfUpload"> & {
    secrets: Readonly<Record<string, SecretConfig>>;
    owner: string;
  },
): Promise<AgentDefinition> {
  const { sandbox, harness, permissions, floor } = definition;
  const { maxSteps, timeoutMs, secretNames: _, ...rest } = settings;
  if ([settings.image, settings.snapshot, settings.template].filter((each) => each !== undefined).length > 1)
    throw new CaissonError("invalid", "a run starts from an image, from a snapshot or from a template, not from several");
  const start = await startFromTemplate(definition, settings, options);
  const snapshot = settings.snapshot === undefined ? start.snapshot : await options.findSnapshot(settings.snapshot);
  const requestedMounts = [...settings.mounts, ...(await mountsOf(settings.uploadedMounts, options))];
  const mounts = requestedMounts.length === 0 ? undefined : checkedMounts(requestedMounts, options);
  const network = withSecretHosts(settings.network, options.secrets);
  const whole = {
    ...definition,
    permissions: { ...permissions, ...permissionRules(settings.permissions) },
    floor: joinedFloor(floor, permissionFloor(settings.permissions)),
    ...(settings.guardian !== undefined && { guardian: { ...definition.guardian, enabled: settings.guardian === "on" } }),
    sandbox: mergeFields(
      { ...sandbox, ...start, limits: { ...options.limits, ...sandbox.limits }, secrets: absoluteSecrets(sandbox.secrets, options.cwd) },
      { ...sandboxSettings(rest), snapshot, network, mounts, mountGuard: mounts && rest.mountGuard, secrets: options.secrets },
    ),
    harness: {
      ...harness,
      ...defined({ maxSteps, timeoutMs }),
      onAsk: settings.onAsk ?? (attended ? harness.onAsk : "deny"),
      onBudget: settings.onBudget ?? (attended ? harness.onBudget : "stop"),
    },
  };
  return parseRequest(AgentDefinition, whole, "an agent");
}

async function mountsOf(
  uploaded: StartRun["settings"]["uploadedMounts"],
  { treeOfUpload, owner }: Pick<StartRunOptions, "treeOfUpload"> & { owner: string },
): Promise<FolderMount[]> {
  return await Promise.all(uploaded.map(async ({ upload, ...mount }) => ({ ...mount, path: await treeOfUpload(upload, { owner }) })));
}

/** Returns the named session if it exists. Throws if it is in use, before a run is created for it. */
async function knownSession(request: StartRun, { sessions, owner }: StartRunOptions & { owner: string }): Promise<Session | null> {
  if (request.session === undefined) return null;
  const id = sessionIdOf(request.session.id, owner);
  const known = await foundOrNull(sessions.get(id));
  if (!known) return null;
  if (request.source !== undefined || request.from !== undefined) {
    throw new CaissonError("invalid", `the session ${request.session.id} already has a workspace, so the run cannot bring another`, {
      hint: "Omit the source (--repo, --from), or choose another session.",
    });
  }
  await sessions.checkFree(id);
  return known;
}

/**
 * Throws `invalid` and `unsafe` for a malformed URL or submodule path, `denied` for a URL that must not be fetched for
 * this owner, `not_found` and `invalid` for a folder, `not_found` for an upload.
 */
async function checkSource(
  source: Session["source"],
  { treeOfUpload, checkFetched, owner }: Pick<StartRunOptions, "treeOfUpload" | "checkFetched"> & { owner: string },
): Promise<void> {
  if (source.kind === "upload") await treeOfUpload(source.upload, { owner });
  if (source.kind === "folder") await checkFolder(source.path);
  if (source.kind !== "git") return;
  checkAddress(source.url);
  for (const place of source.submodulesFrom ?? []) parseGitPlace(place);
  await checkFetched?.(source.url, owner);
}

/**
 * Throws if the agent's file requires a workspace that outlives the run, but the workspace could not be found again.
 */
function checkScope({ name, workspace }: AgentDefinition, scope: Session["scope"]): void {
  if (workspace.scope === "run" || workspace.scope === scope) return;
  const option = `--${workspace.scope} NAME`;
  throw new CaissonError("invalid", `the agent ${name} works in a ${workspace.scope} workspace, but this is a ${scope} workspace`, {
    hint: `Name the workspace with ${option}; the agent's file has \`scope: ${workspace.scope}\`.`,
  });
}

/** The code is `unauthenticated`, so that a command whose own environment has a key drives the run itself. */
function noModel(): CaissonError {
  return new CaissonError("unauthenticated", "no model was chosen", {
    hint: "Name one: --model PROVIDER/MODEL. Or set the key of one provider to use its default model; see `caisson model ls`.",
  });
}
