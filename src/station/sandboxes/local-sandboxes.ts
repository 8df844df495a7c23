import { readdir } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { SandboxId } from "../../contract/ids.ts";
import type { ChangeLabels } from "../../contract/label/change-labels.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import type { CreateSandbox, SnapshotView } from "../../contract/sandbox/sandbox-verbs.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import { once } from "../../lib/once.ts";
import { markedHealth } from "../../sandbox/health-mark.ts";
import { recordStamp } from "../../sandbox/record-stamp.ts";
import type { Resolver } from "../../sandbox/resolver.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { createStore, infoOf, isToSweep, type SandboxRecord } from "../../sandbox/store.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import { withSecrets } from "../secrets/with-secrets.ts";
import { createSandboxHolds } from "./sandbox-holds.ts";
import { removeOwn, sweepSandboxes } from "./sweep-sandboxes.ts";

export interface LocalSandboxesOptions {
  /** The state folder, which exists already. */
  stateDir: string;
  runtimes: RuntimeSet;
  resolver: Resolver;
  /** The runtime to use if the request names none. */
  defaultRuntime: string;
  /** The user's home folder. */
  home: string;
  /** Receives notices for the user. */
  notice: (text: string) => void;
  /** Claims a name, so that no other process can assign it. Throws `exists`, `conflict`. */
  claimName: (name: string, claimed: { owner: string }) => Promise<AsyncDisposable>;
  /** Returns the folder with an upload's files. Throws `not_found`. */
  treeOfUpload: (upload: string, options: { owner: string }) => Promise<string>;
  /** Returns the secrets that an owner may name. */
  secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretConfig>>>;
  /** Removes the sandboxes of runs that have ended. */
  finishRuns: (runtimes: readonly Runtime[]) => Promise<void>;
  /** Called after each change. */
  onChange?: (change: SandboxChange) => void;
}

/** A sweep reads the log for every sandbox of a run, so not every list triggers one. */
const SWEPT_LATELY_MS = 1_000;

/**
 * Runs one sweep at a time, because two concurrent sweeps would each see the other's work half done. Callers wait for
 * the sweep in progress.
 */
function onceAtATime(work: () => Promise<void>): { run(): Promise<void>; isDue(): boolean } {
  let underWay: Promise<void> | null = null;
  let doneAtMs = Number.NEGATIVE_INFINITY;
  return {
    run() {
      underWay ??= work()
        .then(() => {
          doneAtMs = performance.now();
        })
        .finally(() => {
          underWay = null;
        });
      return underWay;
    },
    /** True even during a sweep, so that the caller waits for it. */
    isDue: () => underWay !== null || performance.now() - doneAtMs > SWEPT_LATELY_MS,
  };
}

/** A change that this process made to a sandbox. */
export type SandboxChange =
  | { kind: "made" | "changed"; info: SandboxInfo }
  | { kind: "ended"; id: SandboxId }
  | { kind: "labelled"; id: SandboxId; changes: ChangeLabels };

/** The sandboxes of this machine. */
export interface LocalSandboxes extends SandboxVerbs {
  /** Returns a handle with all rights of the platform. */
  create(...args: Parameters<SandboxVerbs["create"]>): Promise<OwnedSandbox>;
  hold(...args: Parameters<SandboxVerbs["hold"]>): Promise<OwnedSandbox>;
  /** Removes the sandboxes that this process created without keeping them, even if they have holders. */
  removeOwn(): Promise<void>;
  /** Keeps connections open for a moment after their last holder, as a serving station does, until disposed of. */
  keepIdle(): Promise<AsyncDisposable>;
}

export function createLocalSandboxes(options: LocalSandboxesOptions): LocalSandboxes {
  const { stateDir, runtimes, onChange = () => {} } = options;
  const store = createStore({ stateDir });
  const runtimeOf = async (id: SandboxId): Promise<Runtime> => runtimes.get((await store.read(id)).runtime);
  /** A complete id needs no lookup. */
  const find = async (word: string): Promise<SandboxId> => (SandboxId.safeParse(word).success ? word : (await records()).find(word));
  const holds = createSandboxHolds({ open: async (id) => (await runtimeOf(id)).open(id), stampOf: (id) => recordStamp(store.dir(id)) });
  const everyRuntime = () => Promise.all(runtimes.names.map((name) => runtimes.get(name)));
  const context = { store, runtimes, runtimeOf, resting: holds.resting };
  const withHeld = async <Result>(id: string, work: (sandbox: OwnedSandbox) => Promise<Result>): Promise<Result> => {
    await using sandbox = await holds.hold(await find(id));
    return await work(sandbox);
  };
  const adopt = (sandbox: OwnedSandbox): OwnedSandbox => {
    onChange({ kind: "made", info: sandbox.info });
    void sandbox.closed.then(() => onChange({ kind: "ended", id: sandbox.id }));
    return holds.adopt(sandbox);
  };
  const changing = async (word: string, work: (sandbox: OwnedSandbox) => Promise<void>): Promise<void> => {
    const id = await find(word);
    await withHeld(id, work);
    const record = await foundOrNull(store.read(id));
    if (record !== null) onChange({ kind: "changed", info: infoOf(record) });
  };
  const infoNow = (record: SandboxRecord): SandboxInfo => {
    const health = markedHealth(store.dir(record.id), (station) => store.isHolderAlive(station));
    return { ...infoOf(record), ...defined({ health }) };
  };
  const sweeps = onceAtATime(() => sweepSandboxes({ ...context, stateDir, finishRuns: options.finishRuns }));
  /** Loaded on first use, because `exec` starts sandboxes without it. */
  const records = once(async () => {
    const { createSandboxRecords } = await import("./sandbox-records.ts");
    return createSandboxRecords({ ...context, stateDir, infoOf: infoNow, everyRuntime, hold: holds.hold, onChange });
  });
  const verbs: LocalSandboxes = {
    async create(request, { signal, owner = LOCAL_OWNER, onNotice } = {}) {
      const { name } = request.spec;
      await using _claim = name === undefined ? null : await options.claimName(name, { owner });
      const resolvedRequest = await withSecrets(await withUploads(request, { ...options, owner }), { ...options, owner });
      const started =
        resolvedRequest.template === undefined ? resolvedRequest : await (await records()).withBuiltTemplate(resolvedRequest, owner);
      const whole = await withTemplate(started, async (snapshot) => (await records()).findSnapshot(snapshot));
      return adopt(await make(whole, { ...options, owner, ...defined({ signal, notice: onNotice }) }));
    },
    hold: async (id, holdOptions) => holds.hold(await find(id), holdOptions),
    get: async (id) => infoNow(await store.read(await find(id))),
    async list({ sweep = true, ...query } = {}) {
      if (sweep && sweeps.isDue()) await verbs.sweep();
      if (sweep && (await store.list()).records.some(isToSweep)) await verbs.sweep();
      return (await records()).list(query);
    },
    async changedFiles(word) {
      const id = await find(word);
      const held = await holds.peek(id);
      const runtime = await (held === undefined ? runtimeOf(id) : runtimes.get(held.info.runtime));
      const folder = runtime.changesFolder?.(id);
      if (folder === undefined) return null;
      // Most sandboxes have no changes, and reading the top folder is enough to see that.
      const top = await ifErrno(readdir(folder), ABSENT, null);
      if (top === null || top.length === 0) return top === null ? null : { files: 0, isMinimum: false };
      const { countChanged } = await import("../../workspace/count-changed.ts");
      return countChanged(folder);
    },
    label: async (word, changes) => (await records()).label(word, changes),
    stats: (id) => withHeld(id, (sandbox) => sandbox.stats()),
    pause: (id, request = {}) => changing(id, (sandbox) => sandbox.pause(defined(request))),
    async resume(word) {
      const id = await find(word);
      // A paused sandbox on the disk has no guest that could be opened.
      await (await runtimeOf(id)).wake?.(id);
      await changing(id, (sandbox) => sandbox.resume());
    },
    snapshot: async (word, request) => (await records()).snapshot(word, request),
    fork: (id, request = {}) =>
      withHeld(id, async (sandbox) => {
        const forked = adopt(await sandbox.fork({ ...defined(request), keep: true }));
        await forked.release();
        return forked.info;
      }),
    remove: async (word) => (await records()).remove(word),
    sweep: () => sweeps.run(),
    snapshots: async (request) => (await records()).snapshots(request),
    removeSnapshot: async (word) => (await records()).removeSnapshot(word),
    removeOwn: () => removeOwn(context),
    keepIdle: async () => holds.keepIdle(),
  };
  return verbs;
}

/**
 * Replaces uploads by their folders. They are like any other folder, except that nothing in them has to be hidden: the
 * caller chose what to upload.
 */
async function withUploads(
  { uploaded, uploadedMounts = [], ...request }: CreateSandbox,
  { treeOfUpload, owner }: Pick<LocalSandboxesOptions, "treeOfUpload"> & { owner: string },
): Promise<CreateSandbox> {
  if (uploaded === undefined && uploadedMounts.length === 0) return request;
  const sent = await Promise.all(
    uploadedMounts.map(async ({ upload, ...mount }) => ({ ...mount, path: await treeOfUpload(upload, { owner }) })),
  );
  const mounts = [...request.spec.mounts, ...sent];
  if (uploaded === undefined) return { ...request, spec: { ...request.spec, mounts } };
  const { upload, access, origin } = uploaded;
  const workspace = { kind: "folder" as const, path: await treeOfUpload(upload, { owner }), access, origin };
  return { ...request, spec: { ...request.spec, mounts, workspace } };
}

async function withTemplate(
  { snapshot, ...request }: CreateSandbox,
  findSnapshot: (word: string) => Promise<SnapshotView>,
): Promise<CreateSandbox> {
  if (snapshot === undefined) return request;
  const { id, workspaceFolder: path } = await findSnapshot(snapshot);
  const { workspace } = request.spec;
  // Set here already, so that the folder gets the same guards as any other.
  const config = { ...request.spec, template: { kind: "snapshot" as const, id } };
  if (workspace.kind === "folder" || path === undefined) return { ...request, spec: config };
  const guard = request.guard && { ...request.guard, named: true };
  return { ...request, ...defined({ guard }), spec: { ...config, workspace: { kind: "folder", path, access: "overlay" } } };
}

/** Creates the sandbox. A cached probe may be outdated, so with `auto` we probe again, once. */
async function make(
  { spec: config, runtime: requestedRuntime, guard }: CreateSandbox,
  options: Omit<LocalSandboxesOptions, "finishRuns" | "runtimes"> & { signal?: AbortSignal; owner: string },
): Promise<OwnedSandbox> {
  const { resolver, signal } = options;
  const name = requestedRuntime ?? options.defaultRuntime;
  const create = async () => {
    const runtime = await resolver.resolve(name);
    if (signal?.aborted) throw new CaissonError("cancelled", "interrupted before the sandbox was created");
    // Loaded only for a sandbox that shares a folder.
    const guarded =
      sharedFolders(config).length === 0
        ? config
        : await (await import("./guard-folders.ts")).guardFolders(config, { ...options, guard, runtime });
    // The caller's identity decides the owner, even if the request names another one.
    return runtime.create({ ...guarded, ...ownedBy(options.owner) }, defined({ signal }));
  };
  try {
    return await create();
  } catch (error) {
    if (name !== "auto" || !(error instanceof CaissonError) || error.code !== "unavailable") throw error;
    await resolver.forget();
    return create();
  }
}
