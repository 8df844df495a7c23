import { lstatSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { type Labels, RuntimeName, SandboxId } from "../contract/ids.ts";
import { ProcessIdentity } from "../contract/process-identity.ts";
import { Limits, SandboxConfig, type SandboxInfo, SandboxState } from "../contract/sandbox/sandbox.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { defined } from "../lib/defined.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../lib/failures.ts";
import { KnownFiles } from "../lib/known-files.ts";
import { newId, randomLetters } from "../lib/new-id.ts";
import { replaceFile, temporaryName, writeSynced } from "../lib/replace-file.ts";
import { LABELS_NAME, readLabels } from "./labels-file.ts";
import { currentProcess, isProcessAlive, isRunning } from "./process-identity.ts";

/**
 * The host's record of a sandbox. `spec` is its configuration. `owner` is its holder, the process that created it; null
 * means that it has `keep` or was released. Stored records have these names.
 */
export const SandboxRecord = z.object({
  id: SandboxId,
  runtime: RuntimeName,
  state: SandboxState,
  createdAt: z.iso.datetime(),
  spec: SandboxConfig,
  limits: Limits,
  warnings: z.array(z.string()),
  owner: ProcessIdentity.nullable(),
  /** Private data of the runtime. */
  details: z.json(),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

export interface DamagedRecord {
  id: SandboxId;
  dir: string;
  /** The problem, as a sentence. */
  reason: string;
  /** Whether the record was last written before this machine booted, so that no part of the sandbox can be alive. */
  beforeBoot: boolean;
}

/**
 * Stores records of sandboxes. A sandbox's folder holds its record and whatever its runtime stores there; it appears
 * and disappears with the record.
 */
export interface Store {
  dir(id: SandboxId): string;
  /**
   * Writes a record atomically: a crash leaves the old record or the new one. The first write creates the folder and
   * the record in one step.
   */
  write(record: SandboxRecord): Promise<void>;
  /**
   * Writes a record synchronously, without waiting for the disk. It survives this process, but perhaps not a power
   * failure, which no sandbox survives either.
   */
  note(record: SandboxRecord): void;
  /**
   * Replaces the sandbox's labels, in a separate file because its runtime may rewrite the record at any time. Throws
   * `not_found`.
   */
  label(id: SandboxId, labels: Labels): Promise<void>;
  /** Throws `not_found`, and `internal` for an unreadable record. */
  read(id: SandboxId): Promise<SandboxRecord>;
  /** Lists every sandbox of every runtime. Reports damaged records without hiding others. */
  list(): Promise<{ records: SandboxRecord[]; damaged: DamagedRecord[] }>;
  /** Removes the folder; the record goes last, so an interrupted removal can be found again. Idempotent. */
  remove(id: SandboxId): Promise<void>;
  newId(): SandboxId;
  /** Returns the identity of this process. */
  thisProcess(): ProcessIdentity;
  isHolderAlive(holder: ProcessIdentity | null): boolean;
}

/** The largest clock change since boot that is tolerated. */
const CLOCK_ERROR_MS = 3_600_000;
const RECORD_NAME = "sandbox.json";
const RECORD_BYTES_MAX = 4 * 1024 * 1024;
/** Prefixes of folders that are being created (`.new-<pid>-<ticks>-…`) or removed (`.gone-…`); never sandboxes. */
const NEW_PREFIX = ".new-";
const GONE_PREFIX = ".gone-";

export function createStore(options: { stateDir: string }): Store {
  const root = join(options.stateDir, "sandboxes");
  const dir = (id: SandboxId) => {
    if (!SandboxId.safeParse(id).success)
      throw new CaissonError("invalid", `"${id}" is not a sandbox id`, { hint: "Pass an id such as sb_k3v7q2m5x4ab." });
    return join(root, id);
  };
  const store: Store = {
    dir,
    newId: () => newId("sb"),
    thisProcess: currentProcess,
    isHolderAlive: isProcessAlive,
    async write(record) {
      const target = dir(record.id);
      const text = `${JSON.stringify(record, null, 1)}\n`;
      if (await isDirectory(target)) {
        await replaceFile(target, RECORD_NAME, text).catch(rethrow(record.id));
        return;
      }
      const { pid, startTicks } = currentProcess();
      await mkdir(root, { recursive: true, mode: 0o700 });
      const fresh = join(root, `${NEW_PREFIX}${pid}-${startTicks}-${randomLetters(8)}`);
      await mkdir(fresh, { mode: 0o700 });
      try {
        await writeSynced(join(fresh, RECORD_NAME), text);
        await rename(fresh, target);
      } catch (error) {
        await rm(fresh, { recursive: true, force: true });
        // Another process created it first.
        if (!isErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
        await replaceFile(target, RECORD_NAME, text).catch(rethrow(record.id));
      }
    },
    note(record) {
      const target = dir(record.id);
      const text = `${JSON.stringify(record, null, 1)}\n`;
      const { pid, startTicks } = currentProcess();
      if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory()) {
        const temporary = temporaryName(join(target, RECORD_NAME));
        try {
          writeFileSync(temporary, text, { flag: "wx", mode: 0o600 });
          renameSync(temporary, join(target, RECORD_NAME));
        } catch (error) {
          rethrow(record.id)(error);
        }
        return;
      }
      const fresh = join(root, `${NEW_PREFIX}${pid}-${startTicks}-${randomLetters(8)}`);
      mkdirSync(root, { recursive: true, mode: 0o700 });
      mkdirSync(fresh, { mode: 0o700 });
      writeFileSync(join(fresh, RECORD_NAME), text, { flag: "wx", mode: 0o600 });
      renameSync(fresh, target);
    },
    async label(id, labels) {
      if (!(await isDirectory(dir(id)))) throw noSandbox(id);
      await replaceFile(dir(id), LABELS_NAME, `${JSON.stringify(labels)}\n`).catch(rethrow(id));
    },
    async read(id) {
      const outcome = await readRecord(dir(id));
      if (outcome.record !== undefined) return outcome.record;
      if (outcome.missing) throw noSandbox(id);
      throw new CaissonError("internal", `the record of sandbox ${id} is damaged: ${outcome.reason}`, {
        hint: `Remove its remains with \`caisson sandbox rm ${id}\`.`,
      });
    },
    async list() {
      const records: SandboxRecord[] = [];
      const damaged: DamagedRecord[] = [];
      for (const name of await namesIn(root)) {
        if (name.startsWith(GONE_PREFIX) || (name.startsWith(NEW_PREFIX) && !makerAlive(name))) {
          await rm(join(root, name), { recursive: true, force: true });
        }
        if (!SandboxId.safeParse(name).success) continue;
        const outcome = await readRecord(join(root, name));
        if (outcome.record !== undefined) records.push(outcome.record);
        // If the folder no longer exists, another process removed it after the listing.
        else if (await isDirectory(join(root, name)))
          damaged.push({ id: name, dir: join(root, name), reason: outcome.reason, beforeBoot: await isFromBeforeBoot(join(root, name)) });
      }
      return { records, damaged };
    },
    async remove(id) {
      const target = dir(id);
      for (const name of await namesIn(target)) {
        if (name !== RECORD_NAME) await rm(join(target, name), { recursive: true, force: true });
      }
      const trashPath = join(root, `${GONE_PREFIX}${id}-${randomLetters(8)}`);
      try {
        await rename(target, trashPath);
      } catch (error) {
        if (isErrno(error, "ENOENT")) return;
        throw error;
      }
      await rm(trashPath, { recursive: true, force: true });
    },
  };
  return store;
}

/** Whether a runtime keeps this sandbox ready in its pool. It has no user yet, and no user sees it. */
export function isWaiting({ details }: Pick<SandboxRecord, "details">): boolean {
  return typeof details === "object" && details !== null && "waiting" in details && details.waiting === true;
}

/** Returns the part of a record that users see. */
export function infoOf(record: SandboxRecord): SandboxInfo {
  const { id, runtime, state, createdAt, spec: config, limits, warnings } = record;
  const { template, workspace, mounts, network, allowRoot, keep, labels, name, owner = LOCAL_OWNER } = config;
  return {
    id,
    runtime,
    state,
    createdAt,
    template,
    workspace,
    mounts,
    limits,
    network,
    allowRoot,
    keep,
    labels,
    owner,
    warnings,
    ...defined({ name }),
  };
}

/** Whether the sandbox died with its creator, so `sweep` must remove it. */
export function isOrphan(record: SandboxRecord): boolean {
  return record.owner !== null && !record.spec.keep && !isProcessAlive(record.owner);
}

/** Whether `sweep` must remove the sandbox: it is an orphan, or its creator died while creating or removing it. */
export function isToSweep(record: SandboxRecord): boolean {
  return isOrphan(record) || (["creating", "completing"].includes(record.state) && !isProcessAlive(record.owner));
}

function makerAlive(name: string): boolean {
  const [pid, ticks] = name.slice(NEW_PREFIX.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(ticks) });
}

type ReadOutcome = { record: SandboxRecord } | { record?: undefined; missing: boolean; reason: string };

/** Shared by all state folders, because a process has several stores for the same one. */
const knownRecords = new KnownFiles<ReadOutcome>({ max: 4096 });

async function readRecord(dir: string): Promise<ReadOutcome> {
  const path = join(dir, RECORD_NAME);
  try {
    const outcome = await knownRecords.get(path, ({ sizeBytes }) => parseRecord(path, sizeBytes));
    if (outcome === null) return { missing: !(await isDirectory(dir)), reason: `${RECORD_NAME} does not exist` };
    if (outcome.record === undefined) return outcome;
    const { record } = outcome;
    if (!dir.endsWith(`/${record.id}`)) return { missing: false, reason: `it names ${record.id}` };
    const { labels = record.spec.labels } = await readLabels(dir);
    return { record: { ...record, spec: { ...record.spec, labels } } };
  } catch (error) {
    return { missing: isErrno(error, "ENOENT") && !(await isDirectory(dir)), reason: `${RECORD_NAME} cannot be read: ${codeOf(error)}` };
  }
}

/** Throws if the file cannot be read. */
async function parseRecord(path: string, sizeBytes: number): Promise<ReadOutcome> {
  if (sizeBytes > RECORD_BYTES_MAX) return { missing: false, reason: `${path} has ${sizeBytes} bytes` };
  const value = jsonOrNull(await readFile(path, "utf8"));
  if (value === null) return { missing: false, reason: `${RECORD_NAME} is not JSON` };
  const parsed = checkValue(SandboxRecord, value);
  return parsed.success ? { record: parsed.data } : { missing: false, reason: tellProblems(parsed.problems) };
}

/**
 * Converts ENOENT to `not_found`: another process removed the sandbox, together with the file that was being written.
 */
const rethrow = (id: SandboxId) => (error: unknown) => {
  if (!isErrno(error, "ENOENT")) throw error;
  throw new CaissonError("not_found", `sandbox ${id} was removed by another process during this write`, { cause: error });
};

/** Ignores a missing record, for callers that record a sandbox's end: it has already ended. */
export function ifRemoved(error: unknown): void {
  if (!(error instanceof CaissonError && error.code === "not_found")) throw error;
}

const noSandbox = (id: SandboxId) =>
  new CaissonError("not_found", `there is no sandbox ${id}`, { hint: "`caisson sandbox ls` lists them." });

async function isFromBeforeBoot(path: string): Promise<boolean> {
  const { mtimeMs } = await ifErrno(lstat(path), ABSENT, { mtimeMs: Date.now() });
  return mtimeMs < Date.now() - uptime() * 1000 - CLOCK_ERROR_MS;
}

async function namesIn(dir: string): Promise<string[]> {
  return await ifErrno(readdir(dir), ["ENOENT"], []);
}

async function isDirectory(path: string): Promise<boolean> {
  return (await ifErrno(lstat(path), ABSENT, null))?.isDirectory() ?? false;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
