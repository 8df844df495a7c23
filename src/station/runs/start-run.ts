import type { Model } from "../../agent/model/model.ts";
import { joinedFloor, permissionFloor, permissionRules } from "../../agent/permissions.ts";
import type { AgentSource } from "../../agent/rights/agent-source.ts";
import { absoluteSecrets } from "../../contract/absolute-secrets.ts";
import { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import { parseGitPlace } from "../../contract/git-address.ts";
import type { SnapshotId } from "../../contract/ids.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { SecretSpec } from "../../contract/network.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { StartRun } from "../../contract/run-verbs.ts";
import type { FolderMount, LimitsRequest } from "../../contract/sandbox.ts";
import { withSecretHosts } from "../../contract/secret-hosts.ts";
import type { Session } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { checkAddress } from "../../workspace/git/address.ts";
import { checkFolder, type SessionStore } from "../../workspace/sessions.ts";
import { refuseWrongPlace } from "../../workspace/wrong-place.ts";
import { checkAgent } from "../agents/check-agent.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { foundOrNull } from "../names/found-or-null.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { checkedMounts } from "../sandboxes/guard-workspace.ts";
import { namedSecrets, withNamedSecrets } from "../secrets/named-secrets.ts";
import type { PlannedFork } from "../sessions/fork-session.ts";
import { createRunInNewSession, type RunCreation } from "./new-run.ts";
import type { NewQueued, Runs } from "./runs.ts";
import { withSubAgents } from "./sub-agents.ts";

/** Where what the model says is written to, or read from. */
export interface ModelTape {
  record?: string;
  replay?: string;
}

export interface StartRunOptions extends RunCreation {
  sessions: SessionStore;
  runs: Runs;
  crashpoint: (name: string) => void;
  agents: AgentSource;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** Used when the request names none. */
  defaultModel: string | undefined;
  /** The default model of the one provider that has a key, where neither a request nor a setting names a model. */
  keyedModel: () => string | undefined;
  /** What a sandbox has when nobody says otherwise. */
  limits: LimitsRequest;
  /** Those that an owner can name: its own, and the ones that the station's configuration defines. */
  secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretSpec>>>;
  /** What relative paths in the user's own agent files are relative to. */
  cwd: string;
  /** The user's home folder. */
  home: string;
  /** The id of the snapshot that a word stands for. Throws `invalid`, `not_found`. */
  findSnapshot: (word: string) => Promise<SnapshotId>;
  stateDir: string;
  /** The folder with the files of an upload. Throws `not_found`. */
  treeOfUpload: (upload: string, asked: { owner: string }) => Promise<string>;
  /** Throws `denied` for the address of a repository that is never fetched for this owner. */
  checkFetched?: ((url: string, owner: string) => Promise<void>) | undefined;
  /** Nobody else can give this name away meanwhile. Throws `exists`, `conflict`. */
  claimName: ClaimName;
  /** A session with the files of another. Throws `not_found`, `unsupported`. */
  planFork: (from: NonNullable<StartRun["from"]>) => Promise<PlannedFork>;
}

/** Where a station is to drive the run. */
export interface Queueing {
  queued: NewQueued;
  /** Throws `invalid` for what a sandbox could never have. */
  checkLimits: (limits: LimitsRequest) => void;
}

/**
 * Makes what was asked for, in the session that was named or in a new one, by the path that leaves nothing when this
 * process dies on it.
 */
export async function createRequestedRun(
  request: StartRun,
  options: StartRunOptions & { owner: string },
  queueing?: Queueing,
): Promise<string> {
  if (request.source !== undefined && request.from !== undefined)
    throw new CaissonError("invalid", "a run begins with the files of another session or with a source, not with both");
  if (request.source?.kind === "folder" && !request.sourceNamed) refuseWrongPlace(request.source.path, { places: options, option: "repo" });
  const nameable = await options.secretsOf(options.owner);
  const secrets = { ...namedSecrets(request.settings.secretNames, nameable), ...request.settings.secrets };
  const file = await definitionOf(request, { secrets, nameable }, options);
  const asked = await withSettings(file, request, { ...options, secrets });
  refuseBeyondMachine(asked.sandbox.limits);
  queueing?.checkLimits(asked.sandbox.limits);
  const model = request.model ?? options.defaultModel ?? asked.model ?? options.keyedModel();
  if (model === undefined) throw noModel();
  // Fails here, before anything is made, when a model cannot be used or something that the agent names is not there.
  const find = (name: string) => options.agents.load(name, { secrets: nameable });
  const checked = await checkAgent({ ...asked, model }, { find, checkModel: (name) => options.model(name, tapeOf(request)) });
  const definition = { ...asked, subAgents: checked.subAgents };
  const known = await knownSession(request, options);
  // A session and all its runs are one owner's.
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
    return await options.runs.create({ ...run, session: known.id });
  }
  const about = { cleanup: definition.workspace.cleanup, owner, ...newSessionOf(request, { run: run.id, owner }) };
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

/** A session of the run's own has its id. */
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
  { secrets, nameable }: { secrets: Readonly<Record<string, SecretSpec>>; nameable: Readonly<Record<string, SecretSpec>> | null },
  options: Pick<StartRunOptions, "agents" | "defaultModel">,
): Promise<AgentDefinition> {
  const { agent, input, trustAgentFile: vouched } = request;
  if (typeof agent !== "string") return nameable === null ? agent : withNamedSecrets(agent, { given: secrets, nameable });
  return await options.agents.load(agent, { input, vouched, given: settingsGiven(request, secrets, options), secrets: nameable });
}

/**
 * The agent of a request with all it may hand work to, from the files of whoever asks: for a station that stands
 * elsewhere. Secrets that it names are looked up there, unless those that can be named are given. Throws as starting
 * the run does.
 */
export async function agentAsked(
  request: StartRun,
  options: Pick<StartRunOptions, "agents" | "defaultModel"> & { nameable: Readonly<Record<string, SecretSpec>> | null },
): Promise<AgentDefinition> {
  const { nameable } = options;
  const { secretNames, secrets: own } = request.settings;
  const secrets = { ...(nameable && namedSecrets(secretNames, nameable)), ...own };
  const definition = await definitionOf(request, { secrets, nameable }, options);
  return withSubAgents(definition, (name) => options.agents.load(name, { secrets: nameable }));
}

/**
 * The settings of an agent that the request, or the station's configuration, has the say in: what a file has there is
 * not used, so nobody has to trust it.
 */
function settingsGiven(
  { settings, model }: StartRun,
  secrets: Readonly<Record<string, SecretSpec>>,
  { defaultModel }: Pick<StartRunOptions, "defaultModel">,
): Set<string> {
  const network = withSecretHosts(settings.network, secrets);
  const given: Record<string, unknown> = {
    "sandbox.image": settings.image ?? settings.snapshot,
    "sandbox.snapshot": settings.snapshot,
    "sandbox.ociRuntime": settings.ociRuntime,
    "sandbox.allowRoot": settings.allowRoot,
    "sandbox.runtime": settings.runtime,
    "sandbox.network": network,
    "sandbox.gateway": settings.gateway,
    "sandbox.stationAccess": settings.stationAccess,
    "harness.timeoutMs": settings.timeoutMs,
    "harness.maxSteps": settings.maxSteps,
    guardian: settings.guardian,
    model: model ?? defaultModel,
    ...Object.fromEntries(Object.entries(settings.limits).map(([name, value]) => [`sandbox.limits.${name}`, value])),
  };
  const names = Object.keys(secrets).flatMap((name) => [`sandbox.secrets.${name}`, `sandbox.secretNames.${name}`]);
  return new Set([...Object.keys(defined(given)), ...names]);
}

async function withSettings(
  definition: AgentDefinition,
  { settings, attended }: StartRun,
  options: Pick<StartRunOptions, "limits" | "cwd" | "home" | "stateDir" | "findSnapshot" | "treeOfUpload"> & {
    secrets: Readonly<Record<string, SecretSpec>>;
    owner: string;
  },
): Promise<AgentDefinition> {
  const { sandbox, harness, permissions, floor } = definition;
  const { runtime, ociRuntime, image, gateway, stationAccess, allowRoot, mountGuard, maxSteps, timeoutMs } = settings;
  if (image !== undefined && settings.snapshot !== undefined)
    throw new CaissonError("invalid", "a run starts from an image or from a snapshot, not from both");
  const snapshot = settings.snapshot === undefined ? undefined : await options.findSnapshot(settings.snapshot);
  const asked = [...settings.mounts, ...(await mountsOf(settings.uploadedMounts, options))];
  const mounts = asked.length === 0 ? undefined : checkedMounts(asked, options);
  const network = withSecretHosts(settings.network, options.secrets);
  const whole = {
    ...definition,
    permissions: { ...permissions, ...permissionRules(settings.permissions) },
    floor: joinedFloor(floor, permissionFloor(settings.permissions)),
    ...(settings.guardian !== undefined && { guardian: { ...definition.guardian, enabled: settings.guardian === "on" } }),
    sandbox: {
      ...sandbox,
      ...defined({
        runtime,
        ociRuntime,
        image,
        snapshot,
        network,
        gateway,
        stationAccess,
        allowRoot,
        mounts,
        mountGuard: mounts && mountGuard,
      }),
      env: { ...sandbox.env, ...settings.env },
      limits: { ...options.limits, ...sandbox.limits, ...settings.limits },
      secrets: { ...absoluteSecrets(sandbox.secrets, options.cwd), ...options.secrets },
    },
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

/** The session that was named, if it is there. One that somebody works in is refused before a run is made for it. */
async function knownSession(request: StartRun, { sessions, owner }: StartRunOptions & { owner: string }): Promise<Session | null> {
  if (request.session === undefined) return null;
  const id = sessionIdOf(request.session.id, owner);
  const known = await foundOrNull(sessions.get(id));
  if (!known) return null;
  if (request.source !== undefined || request.from !== undefined) {
    throw new CaissonError("invalid", `the session ${request.session.id} has its workspace already, and a run cannot bring it another`, {
      hint: "Leave the source (--repo, --from) out, or choose another session.",
    });
  }
  await sessions.checkFree(id);
  return known;
}

/**
 * Throws `invalid` and `unsafe` for an address or a place of submodules that is none, `denied` for one that is not
 * fetched for this owner, `not_found` and `invalid` for a folder, `not_found` for an upload.
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

/** An agent whose file asks for a workspace that outlives the run is not given one that nobody would find again. */
function checkScope({ name, workspace }: AgentDefinition, scope: Session["scope"]): void {
  if (workspace.scope === "run" || workspace.scope === scope) return;
  const option = `--${workspace.scope} NAME`;
  throw new CaissonError("invalid", `the agent ${name} works in a ${workspace.scope}'s workspace, and this is a ${scope}'s`, {
    hint: `Name it with ${option}; its file says \`scope: ${workspace.scope}\`.`,
  });
}

/** `unauthenticated`, so that a command whose own environment holds a key drives the run itself. */
function noModel(): CaissonError {
  return new CaissonError("unauthenticated", "no model was chosen", {
    hint: "With one provider's key set, its default model is used: see `caisson model ls`. Or name one: --model PROVIDER/MODEL.",
  });
}
