import { setTimeout as delay } from "node:timers/promises";
import type { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { Session } from "../../contract/session.ts";
import { guestMismatch, isGuestMismatch } from "../../sandbox/guest/guest-mismatch.ts";
import { isUnresponsive, silenceOf } from "../../sandbox/guest/waits.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { settleFolder } from "../../workspace/apply-recovery.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { dropSnapshot } from "../sessions/restore-points.ts";
import { guardedRunSpec, RUN_LABEL, runSpec } from "./run-spec.ts";

/** Removes a sandbox that died, kept or not, with everything that is left of it. */
export type RemoveRemains = (runtime: Runtime, id: SandboxId) => Promise<void>;

/** Whether the files of a sandbox that died are in the next one. */
export type FilesFate = "kept" | "gone";

export interface RunSandbox {
  /** Of the run, started or found again. */
  get(): Promise<OwnedSandbox>;
  /**
   * It died: its files are saved where they would go with it, what is left of it is removed, and the next `get` starts
   * another. Resolves with what became of the files.
   */
  lost(): Promise<FilesFate>;
  /** Ends it, when it was ever started. */
  end(): Promise<void>;
  /** Lets go of it, so that the next owner of the run finds it. */
  release(): Promise<void>;
}

export interface RunSandboxOptions {
  run: string;
  /** By which it is found again; default that it is this run's. */
  labels?: Readonly<Record<string, string>>;
  runtime: Runtime;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  removeRemains: RemoveRemains;
  /** What of the user's folders is never mounted. */
  places: KnownPlaces;
  /** Told what is worth a word to the user. */
  notice?: (text: string) => void;
  /** The sandbox that the run had last, as far as its log says. */
  previous: () => string | null;
  /**
   * Called before a sandbox that another version of Caisson started is restarted on its files. Absent: the restart is
   * refused, because no event would record that the processes inside have ended.
   */
  onRestart?: (sandbox: SandboxId) => Promise<void>;
  /** Called once for each sandbox that is new to this process. `files`: of the one that died before it. */
  onReady: (sandbox: OwnedSandbox, about: { why: "start" | "lost" | "resume"; files?: FilesFate }) => Promise<void>;
  crashpoint: Crashpoint;
}

/**
 * The sandbox of a run and all its sub-runs. It is kept, so that it outlives this process, and carries the run's id as
 * a label: whoever takes the run over finds it by that, also when nobody got to write down that it was made.
 */
export function createRunSandbox(options: RunSandboxOptions): RunSandbox {
  const labels = Object.entries(options.labels ?? { [RUN_LABEL]: options.run });
  let current: Promise<OwnedSandbox> | undefined;
  /** Of the one before, when it died. */
  let died: FilesFate | undefined;

  /** Saves what the next one needs of it, then removes it. */
  const bury = async (id: SandboxId, remove: () => Promise<void>): Promise<FilesFate> => {
    const saved = await saveFiles(id, options);
    await remove();
    // Only now: the dead one began from it.
    if (saved.replaced !== null) await dropSnapshot(saved.replaced, options.session.id, options);
    died = saved.files;
    return died;
  };
  const findAgain = async (how: { serveNetwork: boolean }): Promise<OwnedSandbox | null> => {
    const mine = (await options.runtime.list()).filter((info) => labels.every(([key, value]) => info.labels[key] === value));
    for (const info of mine) {
      try {
        return await openLive(info.id, how, options);
      } catch (error) {
        // A guest that is slow to answer is not dead, and neither is one whose network cannot be served.
        const isOver = how.serveNetwork ? silenceOf(error) === "stopped" : isUnresponsive(error) || isGuestMismatch(error);
        if (!isDeath(error) && !isOver) throw error;
        await bury(info.id, () => options.removeRemains(options.runtime, info.id));
      }
    }
    return null;
  };
  let burying: Promise<FilesFate> | undefined;
  const buryCurrent = async (): Promise<FilesFate> => {
    const sandbox = await current?.catch(() => undefined);
    current = undefined;
    // Whatever is left of one that did not come up is found, and removed, by the next `get`.
    if (sandbox === undefined) return "kept";
    return await bury(sandbox.id, () => sandbox.destroy().catch(() => undefined));
  };
  const open = async (): Promise<OwnedSandbox> => {
    const found = await findAgain({ serveNetwork: true });
    if (found) return await takeOver(found, options);
    options.crashpoint("sandbox.effect");
    const capabilities = await options.runtime.capabilities();
    // As it is now: what was saved of a sandbox that died is in it.
    const { snapshot } = await options.sessions.get(options.session.id);
    const session = { ...options.session, snapshot };
    const spec = runSpec({ ...options, session, hasLayer: capabilities.workspaceLayer });
    for (const { path } of sharedFolders(spec)) await settleFolder(path, options.places);
    const notice = options.notice ?? (() => {});
    const guarded = await guardedRunSpec(spec, { ...options, session, capabilities, notice });
    const sandbox = await options.runtime.create(guarded);
    options.crashpoint("sandbox.effect.after");
    const { snapshotGrainMs: grainMs } = options.runtime;
    // What the agent does must be told from what was copied also after a snapshot, see compare-all.ts.
    if (grainMs !== undefined && snapshot === null) await delay(grainMs - (Date.now() % grainMs));
    const files = died ?? (await filesOfGone(options.previous(), { ...options, session }));
    await options.onReady(sandbox, files === undefined ? { why: "start" } : { why: "lost", files });
    return sandbox;
  };
  return {
    get: () => {
      current ??= (burying ?? Promise.resolve()).then(open).catch((error: unknown) => {
        current = undefined;
        throw error;
      });
      return current;
    },
    lost() {
      // Several calls may lose it at once: it is removed once, and nobody goes on before that.
      burying ??= buryCurrent().finally(() => {
        burying = undefined;
      });
      return burying;
    },
    async end() {
      await burying;
      const sandbox = current ? await current.catch(() => null) : await findAgain({ serveNetwork: false });
      current = undefined;
      if (!sandbox) return;
      const replaced = await keepFiles(sandbox, options);
      await sandbox.destroy();
      // Only now: the sandbox began from it.
      if (replaced !== null) await dropSnapshot(replaced, options.session.id, options);
    },
    async release() {
      const sandbox = await current?.catch(() => undefined);
      current = undefined;
      await sandbox?.release().catch(() => undefined);
    },
  };
}

async function openAnswering(runtime: Runtime, id: SandboxId, how: { serveNetwork: boolean }): Promise<OwnedSandbox> {
  const sandbox = await runtime.open(id, how);
  await sandbox.ping();
  return sandbox;
}

async function openLive(id: SandboxId, how: { serveNetwork: boolean }, options: RunSandboxOptions): Promise<OwnedSandbox> {
  try {
    return await openAnswering(options.runtime, id, how);
  } catch (error) {
    // One that is about to end needs no guest.
    if (!isGuestMismatch(error) || !how.serveNetwork) throw error;
    await restartOnFiles(id, options, error);
    return await openAnswering(options.runtime, id, how);
  }
}

/** Its guest may prove to be of another version only now. */
async function takeOver(found: OwnedSandbox, options: RunSandboxOptions): Promise<OwnedSandbox> {
  try {
    await options.onReady(found, { why: "resume" });
    return found;
  } catch (error) {
    if (!isGuestMismatch(error)) throw error;
    await restartOnFiles(found.id, options, error);
    await found.closed;
    const restarted = await openAnswering(options.runtime, found.id, { serveNetwork: true });
    await options.onReady(restarted, { why: "resume" });
    return restarted;
  }
}

/**
 * For a guest that another version of Caisson started: the guest that is started now is of this version. Throws
 * `unsupported` as a guest mismatch where the files would not survive; the sandbox is left as it is then.
 */
async function restartOnFiles(id: SandboxId, { run, runtime, onRestart }: RunSandboxOptions, mismatch: unknown): Promise<void> {
  if (onRestart === undefined) throw mismatch;
  const refused = (why: string, cause?: unknown) =>
    guestMismatch(`another version of Caisson started sandbox ${id} of this run, and it cannot be restarted: ${why}`, {
      hint: `Copy what you need with the version that started it (\`caisson cp ${id}:/workspace FOLDER\`), and remove it with \`caisson sandbox rm ${id}\`. Then \`caisson resume ${run}\` continues in a new sandbox.`,
      cause,
    });
  if (runtime.restart === undefined) throw refused(`the runtime ${runtime.name} cannot start a sandbox again`);
  try {
    await runtime.restart(id, { beforeEnd: () => onRestart(id) });
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "unsupported") throw error;
    throw refused(error.message, error);
  }
}

/** Whether an error of `open` or `ping` says that the guest is no more. Everything else says nothing about it. */
function isDeath(error: unknown): boolean {
  return error instanceof CaissonError && (error.code === "lost" || error.code === "protocol" || error.code === "not_found");
}

/**
 * Where the workspace is a folder of the host, its layer outlives every sandbox. Elsewhere the files are in the dead
 * one, and have to be saved as the session's snapshot, from which the next one starts, before it is removed.
 */
async function saveFiles(
  id: SandboxId,
  options: { runtime: Runtime; session: Session; sessions: SessionStore; crashpoint: Crashpoint },
): Promise<{ files: FilesFate; replaced: SnapshotId | null }> {
  const { runtime, sessions, session } = options;
  if ((await runtime.capabilities()).workspaceLayer) return { files: "kept", replaced: null };
  if (runtime.salvage === undefined) return { files: "gone", replaced: null };
  try {
    const before = (await sessions.get(session.id)).snapshot;
    const saved = await runtime.salvage(id, { name: snapshotName(session.id) });
    options.crashpoint("sandbox.saved");
    await sessions.update(session.id, { snapshot: { id: saved, runtime: runtime.name } });
    return { files: "kept", replaced: before?.id ?? null };
  } catch (error) {
    if (!(error instanceof CaissonError) || error.retryable) throw error;
    return { files: "gone", replaced: null };
  }
}

/**
 * Of a sandbox of which not even remains were found, since somebody removed it: whether the session has its files.
 * Undefined when there was none.
 */
async function filesOfGone(previous: string | null, options: { runtime: Runtime; session: Session }): Promise<FilesFate | undefined> {
  const { runtime, session } = options;
  if (previous === null) return undefined;
  if ((await runtime.capabilities()).workspaceLayer) return "kept";
  const saved = (await runtime.snapshots()).find(({ id }) => id === session.snapshot?.id);
  return saved?.sandbox === previous ? "kept" : "gone";
}

/** A session's snapshots all have this name, so that none is forgotten with it. */
export const snapshotName = (session: string) => `session:${session}`;

/**
 * Where the session's folder has no layer, a snapshot takes the changes over to its next run. Resolves with the one
 * before, which is of no more use.
 */
async function keepFiles(
  sandbox: OwnedSandbox,
  options: { runtime: Runtime; session: Session; sessions: SessionStore },
): Promise<SnapshotId | null> {
  if ((await options.runtime.capabilities()).workspaceLayer) return null;
  const before = (await options.sessions.get(options.session.id)).snapshot;
  const id = await sandbox.snapshot({ name: snapshotName(options.session.id) });
  await options.sessions.update(options.session.id, { snapshot: { id, runtime: options.runtime.name } });
  return before?.id ?? null;
}
