import { CaissonError } from "../../contract/error.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import { linkedRepository } from "../../sandbox/linked-repository.ts";
import { isRunning } from "../../sandbox/process-identity.ts";
import type { PoolSize } from "../../sandbox/runtime.ts";
import { viewState } from "../../sandbox/state-places.ts";
import { limitCgroups } from "./cgroups/cgroup-limits.ts";
import type { Basis, OciDetails } from "./details.ts";
import { endSandbox } from "./end-sandbox.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { identityOf } from "./identity/id-ranges.ts";
import { type HeldNamespaces, makeNamespaces } from "./launch/namespace-pool.ts";
import { isTransparent } from "./launch/transparent.ts";
import { layerState } from "./layers/disk.ts";
import { resolveWorkspace, workspaceRecords } from "./layers/layers.ts";
import type { OciContext } from "./oci-context.ts";
import { type Started, type StartOptions, startSandbox } from "./start-sandbox.ts";

/**
 * Sandboxes and namespaces that wait for somebody to ask. All of it goes with this process, or with the sweep after it.
 */
export interface Pool {
  /** Gives a waiting sandbox the spec's limits and workspace; a fresh one where none waits or none would do. */
  take(options: StartOptions): Promise<Started>;
  /** Of a sandbox that begins to end: filling waits for it as it does for a first command, unless none is left. */
  giveWay(): void;
  size(): PoolSize;
  /** Resolves once the pool is as full as it is to be, or filling it has failed. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

/** Filling waits this long after a sandbox was taken, so that its first command has the processors to itself. */
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
      const member = await startSandbox(oci, { spec: SandboxSpec.parse({}), waiting: true });
      waiting.push(member);
      // One that dies while it waits is nobody's loss.
      void member.connection.closed.then(() => {
        if (forget(member)) void end(oci, member);
      });
    }
    while (!closed && spaces.length < sizes.namespaces) spaces.push(await makeNamespaces(oci));
  };
  /** A pool that cannot be filled is no failure: whoever asks for a sandbox gets a fresh one, or the reason. */
  const refill = () => {
    filling ??= fill()
      .catch(() => {})
      .finally(() => {
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
      if (options.signal?.aborted) throw new CaissonError("cancelled", "creating a sandbox was cancelled");
      const spec = {
        ...options.spec,
        workspace: resolveWorkspace(options.spec.workspace, { state: () => viewState(oci.context.stateDir) }),
      };
      const member = waiting.find((candidate) => suits(candidate, spec, options));
      try {
        if (member === undefined) {
          fresh += 1;
          return await cold(options);
        }
        ready += 1;
        forget(member);
        return await claim(oci, member, spec);
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

/** What a waiting sandbox has is what the default spec gives; limits and the workspace can still be changed. */
function suits(member: Started, spec: SandboxSpec, options: StartOptions): boolean {
  const { spec: has, limits } = member.record;
  if (spec.template.kind !== "host" || options.ownSnapshot != null || spec.allowRoot || spec.limits.diskBytes !== undefined) return false;
  if (spec.mounts.length > 0) return false;
  // Routes are the launcher's to make, before the guest starts.
  if (isTransparent(spec.network)) return false;
  if (spec.readOnlyPaths.length + spec.deniedPaths.length > 0 || spec.tmpBytes !== has.tmpBytes) return false;
  // The guest's own limit on processes is set when it starts.
  if (!hasController(member.details, "pids") && (spec.limits.pids ?? limits.pids) !== limits.pids) return false;
  const { workspace } = spec;
  // The home folder that is kept with the workspace is part of the root.
  if (workspace.kind === "folder" && workspace.layer !== undefined) return false;
  if (workspace.kind === "empty") return true;
  // The repository of a linked work tree is a part of the root.
  if (linkedRepository(workspace.path).kind !== "none") return false;
  // The filter of a sandbox that writes to a folder of the host is another.
  return workspace.access !== "rw" && isApart(workspace.path, member.details.basis);
}

function hasController(details: OciDetails, name: string): boolean {
  return details.cgroups.some(({ controllers }) => controllers.includes(name));
}

/** Nothing in the workspace may be part of the template as well: its content is not to be trusted. */
function isApart(folder: string, basis: Basis): boolean {
  return basis.root.binds.every(({ source }) => source !== folder && !source.startsWith(`${folder}/`));
}

async function claim(oci: OciContext, member: Started, spec: SandboxSpec): Promise<Started> {
  const { connection } = member;
  const details: OciDetails = { ...member.details, waiting: false };
  try {
    const { limits, warnings } = enforcedLimits(spec, oci.ability(), layerState(spec));
    limitCgroups(details.cgroups, limits);
    const owner = spec.keep ? null : oci.store.ownerOf();
    const record = { ...member.record, spec, limits, warnings, owner, details, createdAt: new Date().toISOString() };
    if (spec.keep) await oci.store.write(record);
    else oci.store.note(record);
    await attach(oci, { ...member, record, details });
    return { record, details, connection };
  } catch (error) {
    await end(oci, member).catch(() => {});
    throw error;
  }
}

async function attach(oci: OciContext, { record, details }: Started): Promise<void> {
  const { guest, basis } = details;
  if (record.spec.workspace.kind === "empty") return;
  if (guest === null || !isRunning(guest)) throw new CaissonError("lost", `sandbox ${record.id} has no guest`);
  const identity = identityOf(oci, details);
  await oci.launch({
    what: "attach",
    plan: [
      ...identity.plan,
      ["folder", oci.store.dir(record.id)],
      ["mount-pid", guest.pid],
      ...workspaceRecords(record.spec.workspace, {
        identity,
        disk: false,
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
