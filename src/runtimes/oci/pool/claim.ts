import { renameSync } from "node:fs";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CaissonError } from "../../../contract/error/error.ts";
import { ignore } from "../../../lib/failures.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { viewState } from "../../../sandbox/state-places.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import { limitCgroups } from "../cgroups/cgroup-limits.ts";
import type { OciDetails } from "../details.ts";
import { endSandbox } from "../end-sandbox.ts";
import { handRangeTo, identityOf } from "../identity/id-ranges.ts";
import { newRootPlan, noteView } from "../launch/launch-plan.ts";
import { isTransparent } from "../launch/transparent.ts";
import { layerOf } from "../layers/layer-of.ts";
import { layerFolders, placeLayer, WAITED_PREFIX, workspaceRecords } from "../layers/layers.ts";
import { partsOf } from "../layers/parts.ts";
import { holdBase } from "../layers/sandbox-base.ts";
import type { OciContext } from "../oci-context.ts";
import { planSandbox, type Started, type StartOptions } from "../start-sandbox.ts";

export interface Claim {
  record: SandboxRecord;
  details: OciDetails;
}

/** Returns the record that a waiting sandbox gets with a config. Changes nothing in the sandbox. */
export async function planClaim(oci: OciContext, member: Started, options: StartOptions): Promise<Claim> {
  const { firstId, ociRuntime, guest, cgroups, hasReaper } = member.details;
  const planned = await planSandbox(oci, options, { id: member.record.id, firstId: async () => firstId });
  const details: OciDetails = { ...planned.details, ociRuntime, guest, cgroups, hasReaper };
  return { record: { ...planned.record, details }, details };
}

/**
 * Gives a waiting sandbox limits, files and its user. It is on record as being created until it has its files: after a
 * crash, a sweep removes it. If anything fails, removes the sandbox and throws.
 */
export async function claimSandbox(oci: OciContext, member: Started, { record, details }: Claim, signal?: AbortSignal): Promise<Started> {
  const { connection } = member;
  try {
    limitCgroups(details.cgroups, record.limits);
    const layer = layerOf(record.spec);
    if (layer !== undefined) handRangeTo(oci, layer, { start: details.firstId, holder: oci.store.dir(record.id) });
    oci.store.note(record);
    oci.context.crashpoint?.("pool.claimed:before");
    await holdBase(oci, record, details);
    await giveFiles(oci, member, { record, details }, signal);
    oci.context.crashpoint?.("pool.claimed:after");
    const running: SandboxRecord = { ...record, state: "running", owner: record.spec.keep ? null : record.owner };
    // The record of a sandbox that outlives this process must also survive a power cut.
    if (record.spec.keep) await oci.store.write(running);
    else oci.store.note(running);
    return { record: running, details, connection };
  } catch (error) {
    connection.close();
    await ignore(endSandbox(oci, record, details), "the next sweep removes the rest; we throw the first error");
    throw error;
  }
}

async function giveFiles(oci: OciContext, member: Started, claim: Claim, signal?: AbortSignal): Promise<void> {
  const { record, details } = claim;
  const { guest } = details;
  if (guest === null || !isRunning(guest)) throw new CaissonError("lost", `sandbox ${record.id} has no running guest`);
  const noting = noteView(oci, claim);
  const [noted, given] = await Promise.allSettled([noting, mountFiles(oci, member, claim, { pid: guest.pid, signal })]);
  for (const outcome of [given, noted]) if (outcome.status === "rejected") throw outcome.reason;
}

async function mountFiles(
  oci: OciContext,
  member: Started,
  claim: Claim,
  { pid, signal }: { pid: number; signal: AbortSignal | undefined },
): Promise<void> {
  const { record } = claim;
  if (!hasRootOf(member, claim)) {
    setAside(oci.store.dir(record.id));
    await oci.launch({ what: "new-root", plan: newRootPlan(oci, { ...claim, pid }), signal, lastLine: /^attached$/ });
  } else if (record.spec.workspace.kind !== "empty") await attachWorkspace(oci, claim, pid);
}

/** Whether the root with which a sandbox waited is the one that the config describes, except for the workspace. */
function hasRootOf(member: Started, { record: { spec: config }, details }: Claim): boolean {
  const { template, mounts, readOnlyPaths, deniedPaths, network, workspace } = config;
  if (template.kind !== "host" || isTransparent(network) || mounts.length + readOnlyPaths.length + deniedPaths.length > 0) return false;
  if (workspace.kind === "folder" && workspace.layer !== undefined) return false;
  return details.base.length === 0 && isDeepStrictEqual(details.basis, member.details.basis);
}

/** The old root keeps its layers until it disappears, so the new one needs others. */
function setAside(dir: string): void {
  for (const path of layerFolders(dir)) renameSync(path, join(dir, `${WAITED_PREFIX}${basename(path)}`));
}

async function attachWorkspace(oci: OciContext, { record, details }: Claim, pid: number): Promise<void> {
  const identity = identityOf(oci, details);
  await oci.launch({
    what: "attach",
    plan: [
      ...identity.plan,
      ["folder", oci.store.dir(record.id)],
      ["mount-pid", pid],
      ...workspaceRecords(record.spec.workspace, {
        identity,
        part: partsOf(record.spec, details).workspace,
        place: placeLayer,
        layers: details.basis.workspaceLayers,
        state: viewState(oci.context.stateDir),
      }),
    ],
    lastLine: /^attached$/,
  });
}
