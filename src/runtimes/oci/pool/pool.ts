import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ignore } from "../../../lib/failures.ts";
import type { PoolSize } from "../../../sandbox/runtime.ts";
import { endSandbox } from "../end-sandbox.ts";
import { type HeldNamespaces, makeNamespaces } from "../launch/namespace-pool.ts";
import { hasLayerDisk } from "../layers/disk.ts";
import { layerOf } from "../layers/layer-of.ts";
import { memoryOf } from "../memory/snapshot-memory.ts";
import type { OciContext } from "../oci-context.ts";
import { type Started, type StartOptions, startSandbox } from "../start-sandbox.ts";
import { claimSandbox, planClaim } from "./claim.ts";
import { configOfKind, createKindChoice, isSameKind, kindOf, usualKind, type WaitingKind } from "./waiting-kind.ts";

/** Sandboxes and namespaces that wait for a caller. They are removed with this process, or by the next sweep. */
export interface Pool {
  /** Gives a waiting sandbox the config's limits and files. Starts a new sandbox if no waiting one is suitable. */
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

interface Member extends Started {
  kind: WaitingKind;
}

export function createPool(oci: OciContext): Pool {
  const sizes = { sandboxes: oci.options.pool?.sandboxes ?? 0, namespaces: oci.options.pool?.networkNamespaces ?? 0 };
  const waiting: Member[] = [];
  const spaces: HeldNamespaces[] = [];
  const choice = createKindChoice(usualKind());
  let filling: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let ready = 0;
  let fresh = 0;

  const forget = (member: Member) => waiting.includes(member) && waiting.splice(waiting.indexOf(member), 1).length > 0;
  const add = async (kind: WaitingKind) => {
    const member = { ...(await startSandbox(oci, { config: configOfKind(kind), waiting: true })), kind };
    waiting.push(member);
    // A sandbox that dies while it waits affects no caller.
    void member.connection.closed.then(() => {
      if (forget(member)) void end(oci, member);
    });
  };
  const fill = async () => {
    while (!closed) {
      const { missing, surplus } = compare(choice.wanted(sizes.sandboxes, kindsOf(waiting)), waiting);
      const [kind] = missing;
      if (kind === undefined) break;
      const [unwanted] = surplus;
      if (waiting.length >= sizes.sandboxes && unwanted !== undefined && forget(unwanted)) await end(oci, unwanted);
      await add(kind);
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
  const takeMember = (config: SandboxConfig) => {
    const kind = suitableKind(config);
    if (kind === null) return undefined;
    choice.note(kind);
    const member = waiting.find((candidate) => isSameKind(candidate.kind, kind) && canLimit(candidate, config));
    if (member !== undefined) forget(member);
    return member;
  };
  const giveBack = async (member: Member) => {
    if (closed) await end(oci, member);
    else waiting.push(member);
  };
  refillLater();

  return {
    async take(options) {
      refuseCancelled(options.signal);
      try {
        const memory = options.memory ?? (await memoryOf(oci, options.config));
        // A waiting sandbox has its first process already.
        const member = memory === undefined ? takeMember(options.config) : undefined;
        const claimed =
          member &&
          (await ignore(
            claimMember(oci, member, { options, giveBack }),
            "a new sandbox is started instead, and its caller gets that error",
          ));
        if (claimed !== undefined) {
          ready += 1;
          return claimed;
        }
        refuseCancelled(options.signal);
        fresh += 1;
        return await startCold(oci, options, spaces.pop());
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

const kindsOf = (members: readonly Member[]) => members.map(({ kind }) => kind);

/** Returns which wanted sandboxes are missing, and which waiting ones are not wanted. */
function compare(wanted: readonly WaitingKind[], waiting: readonly Member[]): { missing: WaitingKind[]; surplus: Member[] } {
  const surplus = [...waiting];
  const missing = wanted.filter((kind) => {
    const index = surplus.findIndex((member) => isSameKind(member.kind, kind));
    if (index >= 0) surplus.splice(index, 1);
    return index < 0;
  });
  return { missing, surplus };
}

function suitableKind(config: SandboxConfig): WaitingKind | null {
  const layer = layerOf(config);
  // A session's disk is mounted before the guest starts.
  return layer !== undefined && hasLayerDisk(layer) ? null : kindOf(config);
}

/** Whether the limits can still be changed: without a control group, the guest sets that of processes at its start. */
function canLimit({ record: { limits }, details }: Member, config: SandboxConfig): boolean {
  // gVisor keeps its mounts to itself.
  if (details.ociRuntime === "runsc") return false;
  const hasGroup = details.cgroups.some(({ controllers }) => controllers.includes("pids"));
  return hasGroup || (config.limits.pids ?? limits.pids) === limits.pids;
}

function refuseCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CaissonError("cancelled", "sandbox creation was cancelled");
}

async function startCold(oci: OciContext, options: StartOptions, namespaces: HeldNamespaces | undefined): Promise<Started> {
  try {
    return await startSandbox(oci, { ...options, namespaces });
  } finally {
    namespaces?.close();
  }
}

/** Gives the sandbox back if nothing has changed inside, and removes it if the claim fails later. */
async function claimMember(
  oci: OciContext,
  member: Member,
  { options, giveBack }: { options: StartOptions; giveBack: (member: Member) => Promise<void> },
): Promise<Started> {
  const plan = await planClaim(oci, member, options).catch(async (error: unknown) => {
    await giveBack(member);
    throw error;
  });
  return await claimSandbox(oci, member, plan, options.signal);
}

async function end(oci: OciContext, member: Member): Promise<void> {
  member.connection.close();
  await endSandbox(oci, member.record, member.details);
}
