import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ChangeLabels } from "../../contract/change-labels.ts";
import { CaissonError } from "../../contract/error.ts";
import { SandboxId } from "../../contract/ids.ts";
import type { SecretSpec } from "../../contract/network.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/owner.ts";
import type { SandboxInfo, SandboxSpec } from "../../contract/sandbox.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { WorkspaceGuard } from "../../contract/workspace-guard.ts";
import { defined } from "../../lib/defined.ts";
import { markedHealth } from "../../sandbox/health-mark.ts";
import { recordStamp } from "../../sandbox/record-stamp.ts";
import type { Resolver } from "../../sandbox/resolver.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { createStore, infoOf, isToSweep, type SandboxRecord } from "../../sandbox/store.ts";
import { withSecrets } from "../secrets/with-secrets.ts";
import { createSandboxHolds } from "./sandbox-holds.ts";
import type { SandboxVerbs } from "./verbs.ts";

export interface LocalSandboxesOptions {
  /** A folder that is there already. */
  stateDir: string;
  runtimes: RuntimeSet;
  resolver: Resolver;
  /** What is taken when a request names none. */
  defaultRuntime: string;
  /** The user's home folder. */
  home: string;
  /** Told what is worth a word to the user. */
  notice: (text: string) => void;
  /** Nobody else can give this name away meanwhile. Throws `exists`, `conflict`. */
  claimName: (name: string, claimed: { owner: string }) => Promise<AsyncDisposable>;
  /** The folder with the files of an upload. Throws `not_found`. */
  treeOfUpload: (upload: string, asked: { owner: string }) => Promise<string>;
  /** The secrets that an owner can name. */
  secretsOf: (owner: string) => Promise<Readonly<Record<string, SecretSpec>>>;
  /** Removes the sandboxes of runs that have ended. */
  finishRuns: (runtimes: readonly Runtime[]) => Promise<void>;
  /** Told when it was done. */
  onChange?: (change: SandboxChange) => void;
}

/** Whether runs have ended without their sandboxes takes a look at the log for each: not for every list. */
const SWEPT_LATELY_MS = 1_000;

/** Two at once would each see half of what the other has done; whoever asks meanwhile waits for the one under way. */
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
    /** Also while one is under way, to be waited for. */
    isDue: () => underWay !== null || performance.now() - doneAtMs > SWEPT_LATELY_MS,
  };
}

/** What this process did to a sandbox. */
export type SandboxChange =
  | { kind: "made" | "changed"; info: SandboxInfo }
  | { kind: "ended"; id: SandboxId }
  | { kind: "labelled"; id: SandboxId; changes: ChangeLabels };

/** The sandboxes of this machine. */
export interface LocalSandboxes extends SandboxVerbs {
  /** The same with everything the platform may do. */
  create(...args: Parameters<SandboxVerbs["create"]>): Promise<OwnedSandbox>;
  hold(...args: Parameters<SandboxVerbs["hold"]>): Promise<OwnedSandbox>;
  /** Removes the sandboxes that this process made and does not mean to keep, whoever holds them. */
  removeOwn(): Promise<void>;
  /** Keeps connections for a moment after their last holder, as a station does that serves, until it is disposed of. */
  letRest(): Promise<AsyncDisposable>;
}

export function createLocalSandboxes(options: LocalSandboxesOptions): LocalSandboxes {
  const { stateDir, runtimes, onChange = () => {} } = options;
  const store = createStore({ stateDir });
  const runtimeOf = async (id: SandboxId): Promise<Runtime> => runtimes.get((await store.read(id)).runtime);
  /** A whole id needs no look at the others. */
  const find = async (word: string): Promise<SandboxId> => {
    if (SandboxId.safeParse(word).success) return word;
    const { findSandbox } = await import("../names/find-sandbox.ts");
    return findSandbox(word, store);
  };
  const holds = createSandboxHolds({ open: async (id) => (await runtimeOf(id)).open(id), stampOf: (id) => recordStamp(store.dir(id)) });
  const everyRuntime = () => Promise.all(runtimes.names.map((name) => runtimes.get(name)));
  const context = { store, runtimes, runtimeOf, resting: holds.resting };
  const withHeld = async <Result>(id: string, work: (sandbox: OwnedSandbox) => Promise<Result>): Promise<Result> => {
    await using sandbox = await holds.hold(await find(id));
    return await work(sandbox);
  };
  const adopt = (made: OwnedSandbox): OwnedSandbox => {
    onChange({ kind: "made", info: made.info });
    void made.closed.then(() => onChange({ kind: "ended", id: made.id }));
    return holds.adopt(made);
  };
  const changing = async (word: string, work: (sandbox: OwnedSandbox) => Promise<void>): Promise<void> => {
    const id = await find(word);
    await withHeld(id, work);
    const record = await store.read(id).catch(() => null);
    if (record !== null) onChange({ kind: "changed", info: infoOf(record) });
  };
  const infoNow = (record: SandboxRecord): SandboxInfo => {
    const health = markedHealth(store.dir(record.id), (station) => store.ownerAlive(station));
    return { ...infoOf(record), ...defined({ health }) };
  };
  const sweeps = onceAtATime(async () => {
    const { sweepSandboxes } = await import("./sweep-sandboxes.ts");
    await sweepSandboxes({ ...context, stateDir, finishRuns: options.finishRuns });
  });
  const verbs: LocalSandboxes = {
    async create(request, { signal, owner = LOCAL_OWNER, onNotice } = {}) {
      const { name } = request.spec;
      await using _claim = name === undefined ? null : await options.claimName(name, { owner });
      const given = await withSecrets(await withUploads(request, { ...options, owner }), { ...options, owner });
      const whole = await withTemplate(given, everyRuntime);
      return adopt(await make(whole, { ...options, owner, ...defined({ signal, notice: onNotice }) }));
    },
    hold: async (id, asked) => holds.hold(await find(id), asked),
    get: async (id) => infoNow(await store.read(await find(id))),
    async list({ sweep = true, ...asked } = {}) {
      const { listSandboxes } = await import("./list-sandboxes.ts");
      if (sweep && sweeps.isDue()) await verbs.sweep();
      if (sweep && (await store.list()).records.some(isToSweep)) await verbs.sweep();
      return listSandboxes(asked, { store, infoOf: infoNow });
    },
    async changedFiles(word) {
      const id = await find(word);
      const held = await holds.peek(id);
      const runtime = await (held === undefined ? runtimeOf(id) : runtimes.get(held.info.runtime));
      const folder = runtime.changesFolder?.(id);
      if (folder === undefined) return null;
      // Mostly there is nothing, and a look at the top is all that it takes.
      const top = await readdir(folder).catch(() => null);
      if (top === null || top.length === 0) return top === null ? null : { files: 0, isMinimum: false };
      const { countChanged } = await import("../../workspace/count-changed.ts");
      return countChanged(folder);
    },
    label: async (id, changes) => infoNow(await label(await find(id), changes, { store, onChange })),
    stats: (id) => withHeld(id, (sandbox) => sandbox.stats()),
    pause: (id) => changing(id, (sandbox) => sandbox.pause()),
    resume: (id) => changing(id, (sandbox) => sandbox.resume()),
    async snapshot(id, request = {}) {
      const { keepSnapshot } = await import("./snapshots.ts");
      return keepSnapshot(await everyRuntime(), { ...request, owner: (await verbs.get(id)).owner }, (named) =>
        withHeld(id, (sandbox) => sandbox.snapshot(named)),
      );
    },
    fork: (id) =>
      withHeld(id, async (sandbox) => {
        const forked = adopt(await sandbox.fork({ keep: true }));
        await forked.release();
        return forked.info;
      }),
    async remove(id) {
      const { removeSandbox } = await import("./remove-sandbox.ts");
      await removeSandbox(await find(id), context);
    },
    sweep: () => sweeps.run(),
    async snapshots(asked = {}) {
      const { listSnapshots } = await import("./snapshots.ts");
      return await listSnapshots(asked, await everyRuntime());
    },
    async removeSnapshot(id) {
      const { findSnapshot } = await import("./snapshots.ts");
      const { snapshot, runtime } = await findSnapshot(await everyRuntime(), id);
      await runtime.removeSnapshot(snapshot.id);
    },
    removeOwn: async () => (await import("./sweep-sandboxes.ts")).removeOwn(context),
    letRest: async () => holds.letRest(),
  };
  return verbs;
}

async function label(...args: Parameters<typeof import("./label-sandbox.ts").labelSandbox>): Promise<SandboxRecord> {
  const { labelSandbox } = await import("./label-sandbox.ts");
  return await labelSandbox(...args);
}

/** With the folders that were sent here: they are like any other, and nobody has to be kept from what was not sent. */
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

async function withTemplate({ snapshot, ...request }: CreateSandbox, runtimes: () => Promise<Runtime[]>): Promise<CreateSandbox> {
  if (snapshot === undefined) return request;
  const { findSnapshot } = await import("./snapshots.ts");
  const { id, workspaceFolder: path } = (await findSnapshot(await runtimes(), snapshot)).snapshot;
  const { workspace } = request.spec;
  // Said here already, so that the folder is guarded like any other.
  const spec = { ...request.spec, template: { kind: "snapshot" as const, id } };
  if (workspace.kind === "folder" || path === undefined) return { ...request, spec };
  const guard = request.guard && { ...request.guard, named: true };
  return { ...request, ...defined({ guard }), spec: { ...spec, workspace: { kind: "folder", path, access: "overlay" } } };
}

/** Throws `invalid` for a folder that is not to be shown, `unsupported` for what cannot be kept from a sandbox here. */
async function guardedSpec(
  spec: SandboxSpec,
  options: Pick<LocalSandboxesOptions, "home" | "stateDir" | "notice"> & { guard: WorkspaceGuard; runtime: Runtime },
): Promise<SandboxSpec> {
  if (sharedFolders(spec).length === 0) return spec;
  const { guard, home, stateDir, notice } = options;
  const [{ checkedMounts, guardWritable, hideCredentials }, { refuseWrongPlace }] = await Promise.all([
    import("./guard-workspace.ts"),
    import("../../workspace/wrong-place.ts"),
  ]);
  const places = { home, stateDir };
  if (spec.workspace.kind === "folder" && !guard.named) refuseWrongPlace(spec.workspace.path, { places, option: "workspace" });
  const checked = { ...spec, mounts: checkedMounts(spec.mounts, places) };
  const capabilities = await options.runtime.capabilities();
  const rules = { hide: guard.hide, show: guard.show };
  const hidden = await hideCredentials(checked, { folders: sharedFolders(checked), rules, capabilities, notice });
  return guard.allowHooks ? hidden : guardWritable(hidden, { places, capabilities });
}

/** Before anything looks at a folder: what a dead apply left half done there is taken back. */
async function settled(folder: string, { stateDir }: Pick<LocalSandboxesOptions, "stateDir">): Promise<void> {
  if (!existsSync(join(stateDir, "applies"))) return;
  await (await import("../../workspace/apply-recovery.ts")).settleFolder(folder, { stateDir });
}

/** A probe that was remembered may be wrong by now; then `auto` looks again, once. */
async function make(
  { spec, runtime: asked, guard }: CreateSandbox,
  options: Omit<LocalSandboxesOptions, "finishRuns" | "runtimes"> & { signal?: AbortSignal; owner: string },
): Promise<OwnedSandbox> {
  const { resolver, signal } = options;
  const name = asked ?? options.defaultRuntime;
  const create = async () => {
    const runtime = await resolver.resolve(name);
    if (signal?.aborted) throw new CaissonError("cancelled", "interrupted before the sandbox was made");
    for (const { path } of sharedFolders(spec)) await settled(path, options);
    const guarded = guard === undefined ? spec : await guardedSpec(spec, { ...options, guard, runtime });
    // Whatever a request says there: whose it is was decided by who made it.
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
