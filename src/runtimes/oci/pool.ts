import { CaissonError } from "../../contract/error/error.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { SandboxField } from "../../contract/sandbox/sandbox-fields.ts";
import { ignore } from "../../lib/failures.ts";
import { linkedRepository } from "../../sandbox/linked-repository.ts";
import { isRunning } from "../../sandbox/process-identity.ts";
import type { PoolSize } from "../../sandbox/runtime.ts";
import { changedFields } from "../../sandbox/sandbox-config.ts";
import { viewState } from "../../sandbox/state-places.ts";
import { limitCgroups } from "./cgroups/cgroup-limits.ts";
import type { Basis, OciDetails } from "./details.ts";
import { endSandbox } from "./end-sandbox.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { identityOf } from "./identity/id-ranges.ts";
import { type HeldNamespaces, makeNamespaces } from "./launch/namespace-pool.ts";
import { isTransparent } from "./launch/transparent.ts";
import { layerState } from "./layers/disk.ts";
import { placeLayer, resolveWorkspace, workspaceRecords } from "./layers/layers.ts";
import { partsOf } from "./layers/parts.ts";
import type { OciContext } from "./oci-context.ts";
import { type Started, type StartOptions, startSandbox } from "./start-sandbox.ts";

/** Sandboxes and namespaces that wait for a caller. They are removed with this process, or by the next sweep. */
export interface Pool {
  /** Gives a waiting sandbox the config's limits and workspace. Starts a new sandbox if no waiting one is suitable. */
  take(options: StartOptions): Promise<Started>;
  /**
   * Postpones a scheduled refill, so that a sandbox that is ending has the processors to itself. Does nothing if no
   * sandbox is waiting.
   */
  giveWay(): void;
  size(): PoolSize;
  /** Resolves when the pool is full, or when filling it has failed. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

/** Refilling waits this long after a sandbox is taken, so that its first command has the processors to itself. */
const REFILL_DELAY_MS = 50;

export function createPool(oci: OciContext): Pool {
  const sizes = { sandboxes: oci.options.pool?.sandboxes ?? 0, namespaces: oci.options.pool?.networkNamespaces ?? 0 };
  const waiting: Started[] = [];
  const spaces: HeldNamespaces[] = [];
  let filling: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let ready = 0;
  let fresh = 0;

  const forget = (member: Started) => {
    const index = waiting.indexOf(member);
    if (index >= 0) waiting.splice(index, 1);
    return index >= 0;
  };
  const fill = async () => {
    while (!closed && waiting.length < sizes.sandboxes) {
      const member = await startSandbox(oci, { config: SandboxConfig.parse({}), waiting: true });
      waiting.push(member);
      // A sandbox that dies while it waits affects no caller.
      void member.connection.closed.then(() => {
        if (forget(member)) void end(oci, member);
      });
    }
    while (!closed && spaces.length < sizes.namespaces) spaces.push(await makeNamespaces(oci));
  };
  const refill = () => {
    filling ??= ignore(fill(), "without a pool, each sandbox is created on request, and its caller gets the error").finally(() => {
      filling = null;
    });
    return filling;
  };
  const refillLater = () => {
    if (closed || sizes.sandboxes + sizes.namespaces === 0) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void refill();
    }, REFILL_DELAY_MS).unref();
  };
  const cold = async (options: StartOptions) => {
    const namespaces = spaces.pop();
    try {
      return await startSandbox(oci, { ...options, namespaces });
    } finally {
      namespaces?.close();
    }
  };
  refillLater();

  return {
    async take(options) {
      if (options.signal?.aborted) throw new CaissonError("cancelled", "sandbox creation was cancelled");
      const config = {
        ...options.config,
        workspace: resolveWorkspace(options.config.workspace, { state: () => viewState(oci.context.stateDir) }),
      };
      const member = waiting.find((candidate) => suits(candidate, config, options));
      try {
        if (member === undefined) {
          fresh += 1;
          return await cold(options);
        }
        ready += 1;
        forget(member);
        return await claim(oci, member, config);
      } finally {
        refillLater();
      }
    },
    giveWay() {
      if (timer !== undefined && waiting.length > 0) refillLater();
    },
    size: () => ({ waiting: waiting.length, size: sizes.sandboxes, ready, fresh }),
    async warm() {
      clearTimeout(timer);
      await refill();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await filling;
      for (const space of spaces.splice(0)) space.close();
      await Promise.all(waiting.splice(0).map((member) => end(oci, member)));
    },
  };
}

/** Fields that can still be changed in a waiting sandbox. */
const changeable: ReadonlySet<SandboxField> = new Set(["limits", "env", "network", "secrets", "gateway", "stationAccess"]);

/**
 * Whether a waiting sandbox fits the config. It was started with the default config; only limits and the workspace can
 * still be changed.
 */
function suits(member: Started, config: SandboxConfig, options: StartOptions): boolean {
  const { spec: has, limits } = member.record;
  if (config.template.kind !== "host" || options.ownSnapshot != null || config.limits.diskBytes !== undefined) return false;
  // All other fields are part of the root or of the guest's start.
  if (changedFields(config, has).some((name) => !changeable.has(name))) return false;
  // The launcher creates routes before the guest starts.
  if (isTransparent(config.network)) return false;
  // The guest's own process limit is set when it starts.
  if (!hasController(member.details, "pids") && (config.limits.pids ?? limits.pids) !== limits.pids) return false;
  const { workspace } = config;
  // A home folder that is stored with the workspace is part of the root.
  if (workspace.kind === "folder" && workspace.layer !== undefined) return false;
  if (workspace.kind === "empty") return true;
  // The repository of a linked work tree is part of the root.
  if (linkedRepository(workspace.path).kind !== "none") return false;
  // A sandbox that writes to a host folder has a different filter.
  return workspace.access !== "rw" && isApart(workspace.path, member.details.basis);
}

function hasController(details: OciDetails, name: string): boolean {
  return details.cgroups.some(({ controllers }) => controllers.includes(name));
}

/** Whether no part of the template is in the workspace, whose content is not trusted. */
function isApart(folder: string, basis: Basis): boolean {
  return basis.root.binds.every(({ source }) => source !== folder && !source.startsWith(`${folder}/`));
}

async function claim(oci: OciContext, member: Started, config: SandboxConfig): Promise<Started> {
  const { connection } = member;
  const details: OciDetails = { ...member.details, waiting: false };
  try {
    const { limits, warnings } = enforcedLimits(config, oci.ability(), layerState(config));
    limitCgroups(details.cgroups, limits);
    const holder = config.keep ? null : oci.store.thisProcess();
    const record = { ...member.record, spec: config, limits, warnings, owner: holder, details, createdAt: new Date().toISOString() };
    if (config.keep) await oci.store.write(record);
    else oci.store.note(record);
    await attach(oci, { ...member, record, details });
    return { record, details, connection };
  } catch (error) {
    await ignore(end(oci, member), "we throw the first error");
    throw error;
  }
}

async function attach(oci: OciContext, { record, details }: Started): Promise<void> {
  const { guest, basis } = details;
  if (record.spec.workspace.kind === "empty") return;
  if (guest === null || !isRunning(guest)) throw new CaissonError("lost", `sandbox ${record.id} has no running guest`);
  const identity = identityOf(oci, details);
  await oci.launch({
    what: "attach",
    plan: [
      ...identity.plan,
      ["folder", oci.store.dir(record.id)],
      ["mount-pid", guest.pid],
      ...workspaceRecords(record.spec.workspace, {
        identity,
        part: partsOf(record.spec, details).workspace,
        place: placeLayer,
        layers: basis.workspaceLayers,
        state: viewState(oci.context.stateDir),
      }),
    ],
    lastLine: /^attached$/,
  });
}

async function end(oci: OciContext, member: Started): Promise<void> {
  member.connection.close();
  await endSandbox(oci, member.record, member.details);
}
