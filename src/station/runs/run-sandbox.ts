import { setTimeout as delay } from "node:timers/promises";
import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import { guestMismatch, isGuestMismatch } from "../../sandbox/guest/guest-mismatch.ts";
import { isUnresponsive, silenceOf } from "../../sandbox/guest/waits.ts";
import type { RemoveRemains } from "../../sandbox/remove-remains.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { settleFolder } from "../../workspace/apply-recovery.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import { configOfRun, guardRunConfig } from "../sandboxes/run-config.ts";
import { dropSnapshot } from "../sessions/stored-points.ts";
import { RUN_LABEL, snapshotName } from "../vocabulary/station-names.ts";

/** Whether the next sandbox has the files of the one that died. */
export type FilesFate = "kept" | "gone";

export interface RunSandbox {
  /** Returns the run's sandbox, which it starts or finds again. */
  get(): Promise<OwnedSandbox>;
  /**
   * Handles a dead sandbox: saves files that would disappear with it, and removes its remains. The next `get` starts
   * another. Resolves with the fate of the files.
   */
  lost(): Promise<FilesFate>;
  /** Ends the sandbox if it was ever started. */
  end(): Promise<void>;
  /** Releases the sandbox for the next holder of the run. */
  release(): Promise<void>;
}

export interface RunSandboxOptions {
  run: string;
  /** The labels that identify the sandbox. Defaults to the run label. */
  labels?: Readonly<Record<string, string>>;
  runtime: Runtime;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  removeRemains: RemoveRemains;
  /** Known places in the user's folders, which are never mounted. */
  places: KnownPlaces;
  /** Receives notices for the user. */
  notice?: (text: string) => void;
  /** Returns the run's last sandbox according to its log, or null. */
  previous: () => string | null;
  /**
   * Called before a sandbox that another version of Caisson started is restarted with its files. Without it, the
   * restart is refused, because no event would record that the processes inside have ended.
   */
  onRestart?: (sandbox: SandboxId) => Promise<void>;
  /** Called once for each sandbox that is new to this process. `files` is the fate of the previous sandbox's files. */
  onReady: (sandbox: OwnedSandbox, about: { why: "start" | "lost" | "resume"; files?: FilesFate }) => Promise<void>;
  crashpoint: Crashpoint;
}

/**
 * Manages the sandbox of a run and all its sub-runs. We keep it, so that it outlives this process. It carries the run's
 * id as a label, by which the next driver finds it even if its creation was never recorded.
 */
export function createRunSandbox(options: RunSandboxOptions): RunSandbox {
  const labels = Object.entries(options.labels ?? { [RUN_LABEL]: options.run });
  let current: Promise<OwnedSandbox> | undefined;
  /** The fate of the previous sandbox's files, if it died. */
  let died: FilesFate | undefined;

  /** Saves what the next sandbox needs, then removes this one. */
  const bury = async (id: SandboxId, remove: () => Promise<void>): Promise<FilesFate> => {
    const saved = await saveFiles(id, options);
    await remove();
    // We could not drop the old snapshot earlier, because the dead sandbox was based on it.
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
        // A guest that answers slowly is not dead; neither is a sandbox whose network cannot be served.
        const isOver = how.serveNetwork ? silenceOf(error) === "stopped" : isUnresponsive(error) || isGuestMismatch(error);
        if (!isDeath(error) && !isOver) throw error;
        await bury(info.id, () => options.removeRemains(options.runtime, info.id));
      }
    }
    return null;
  };
  let burying: Promise<FilesFate> | undefined;
  const openedOrUndefined = async () => (current === undefined ? undefined : await ignore(current, "its caller got the error"));
  const buryCurrent = async (): Promise<FilesFate> => {
    const sandbox = await openedOrUndefined();
    current = undefined;
    // If it never came up, the next `get` finds and removes what remains of it.
    if (sandbox === undefined) return "kept";
    return await bury(sandbox.id, async () => void (await ignore(sandbox.destroy(), "the next sweep removes the rest")));
  };
  const open = async (): Promise<OwnedSandbox> => {
    const found = await findAgain({ serveNetwork: true });
    if (found) return await takeOver(found, options);
    options.crashpoint("sandbox.effect");
    const capabilities = await options.runtime.capabilities();
    // Read again, because it may now contain what we saved from a dead sandbox.
    const { snapshot } = await options.sessions.get(options.session.id);
    const session = { ...options.session, snapshot };
    const config = configOfRun({ ...options, session, hasLayer: capabilities.workspaceLayer });
    for (const { path } of sharedFolders(config)) await settleFolder(path, options.places);
    const notice = options.notice ?? (() => {});
    const guarded = await guardRunConfig(config, { ...options, session, capabilities, notice });
    const sandbox = await options.runtime.create(guarded);
    options.crashpoint("sandbox.effect.after");
    const { snapshotGrainMs: grainMs } = options.runtime;
    // A snapshot rounds file times down. We wait for the next grain, so that the agent's changes still differ in time
    // from copied files in a snapshot; see compare-all.ts.
    if (grainMs !== undefined && snapshot === null) await delay(grainMs - (Date.now() % grainMs));
    const files = died ?? (await filesOfDeadSandbox(options.previous(), { ...options, session }));
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
      // Several calls may find the sandbox dead at the same time. It is removed once, and every call waits for the
      // removal.
      burying ??= buryCurrent().finally(() => {
        burying = undefined;
      });
      return burying;
    },
    async end() {
      await burying;
      const sandbox = current ? await openedOrUndefined() : await findAgain({ serveNetwork: false });
      current = undefined;
      if (!sandbox) return;
      const replaced = await keepFiles(sandbox, options);
      await sandbox.destroy();
      // We could not drop the old snapshot earlier, because the sandbox was based on it.
      if (replaced !== null) await dropSnapshot(replaced, options.session.id, options);
    },
    async release() {
      const sandbox = await openedOrUndefined();
      current = undefined;
      if (sandbox !== undefined) await ignore(sandbox.release(), "the next sweep finds it without a holder");
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
    // A sandbox that we are about to end needs no guest.
    if (!isGuestMismatch(error) || !how.serveNetwork) throw error;
    await restartOnFiles(id, options, error);
    return await openAnswering(options.runtime, id, how);
  }
}

/** Takes over a running sandbox. Sometimes only `onReady` reveals that its guest has another version. */
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
 * Restarts a sandbox whose guest another version of Caisson started, which gives it a guest of this version. Throws
 * `unsupported` as a guest mismatch, and leaves the sandbox alone, if the files would not survive.
 */
async function restartOnFiles(id: SandboxId, { run, runtime, onRestart }: RunSandboxOptions, mismatch: unknown): Promise<void> {
  if (onRestart === undefined) throw mismatch;
  const refuseRestart = (why: string, cause?: unknown) =>
    guestMismatch(`another version of Caisson started sandbox ${id} of this run, and it cannot be restarted: ${why}`, {
      hint: `Copy what you need with the version that started it (\`caisson cp ${id}:/workspace FOLDER\`), and remove it with \`caisson sandbox rm ${id}\`. Then run \`caisson resume ${run}\` to continue in a new sandbox.`,
      cause,
    });
  if (runtime.restart === undefined) throw refuseRestart(`the runtime ${runtime.name} cannot restart a sandbox`);
  try {
    await runtime.restart(id, { beforeEnd: () => onRestart(id) });
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "unsupported") throw error;
    throw refuseRestart(error.message, error);
  }
}

/** Returns whether an error of `open` or `ping` means that the guest is dead. Other errors say nothing about it. */
function isDeath(error: unknown): boolean {
  return error instanceof CaissonError && (error.code === "lost" || error.code === "protocol" || error.code === "not_found");
}

/**
 * Saves a dead sandbox's files before it is removed. If the workspace is a host folder with a layer, the layer outlives
 * every sandbox and nothing has to be saved. Otherwise the files are inside the dead sandbox, and become the session's
 * snapshot, from which the next sandbox starts.
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
 * Returns whether the session has the files of the previous sandbox, after a user removed that sandbox and its remains.
 * Undefined if there was no previous sandbox.
 */
async function filesOfDeadSandbox(
  previous: string | null,
  options: { runtime: Runtime; session: Session },
): Promise<FilesFate | undefined> {
  const { runtime, session } = options;
  if (previous === null) return undefined;
  if ((await runtime.capabilities()).workspaceLayer) return "kept";
  const saved = (await runtime.snapshots()).find(({ id }) => id === session.snapshot?.id);
  return saved?.sandbox === previous ? "kept" : "gone";
}

/**
 * Stores the changes for the session's next run as a snapshot, if the session's folder has no layer. Resolves with the
 * previous snapshot, which is no longer needed.
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
