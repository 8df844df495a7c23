import { lstatSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { type Labels, RuntimeName, SandboxId } from "../contract/ids.ts";
import { LOCAL_OWNER } from "../contract/owner.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import { ProcessIdentity } from "../contract/process-identity.ts";
import { Limits, type SandboxInfo, SandboxSpec, SandboxState } from "../contract/sandbox.ts";
import { defined } from "../lib/defined.ts";
import { isErrno } from "../lib/is-errno.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { KnownFiles } from "../lib/known-files.ts";
import { newId, randomLetters } from "../lib/new-id.ts";
import { replaceFile, temporaryName, writeSynced } from "../lib/replace-file.ts";
import { LABELS_NAME, readLabels } from "./labels-file.ts";
import { currentProcess, isProcessAlive, isRunning } from "./process-identity.ts";

/**
 * What the host remembers of a sandbox. `owner` is the process that made it; null means that it is kept, or was
 * released.
 */
export const SandboxRecord = z.object({
  id: SandboxId,
  runtime: RuntimeName,
  state: SandboxState,
  createdAt: z.iso.datetime(),
  spec: SandboxSpec,
  limits: Limits,
  warnings: z.array(z.string()),
  owner: ProcessIdentity.nullable(),
  /** The runtime's own, as it likes. */
  details: z.json(),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

export interface DamagedRecord {
  id: SandboxId;
  dir: string;
  /** What is wrong with it, as a sentence. */
  reason: string;
  /** Whether it was last written before this machine started, so that nothing of the sandbox can be alive. */
  beforeBoot: boolean;
}

/**
 * The folder of a sandbox holds its record and whatever its runtime puts there; it appears and disappears with the
 * record.
 */
export interface Store {
  dir(id: SandboxId): string;
  /**
   * Atomic: a crash leaves the old record or the new one. The first write makes the folder, record included, in one
   * step.
   */
  write(record: SandboxRecord): Promise<void>;
  /**
   * The same at once and without waiting for the disk: it outlives this process, but perhaps not a power cut, after
   * which nothing of a sandbox lives either.
   */
  note(record: SandboxRecord): void;
  /**
   * What the sandbox is found by from now on, in place of the labels that it was made with. In a file of its own: its
   * runtime writes the record whenever it likes, as it was made. Throws `not_found`.
   */
  label(id: SandboxId, labels: Labels): Promise<void>;
  /** Throws `not_found`, and `internal` for a record that cannot be understood. */
  read(id: SandboxId): Promise<SandboxRecord>;
  /** Every sandbox of every runtime. A damaged record is reported and hides nothing else. */
  list(): Promise<{ records: SandboxRecord[]; damaged: DamagedRecord[] }>;
  /** Removes the folder; the record goes last, so that an interrupted removal is found again. Idempotent. */
  remove(id: SandboxId): Promise<void>;
  newId(): SandboxId;
  /** This process. */
  ownerOf(): ProcessIdentity;
  ownerAlive(owner: ProcessIdentity | null): boolean;
}

/** How far the machine's clock may have been set since it started. */
const CLOCK_ERROR_MS = 3_600_000;
const RECORD_NAME = "sandbox.json";
const RECORD_BYTES_MAX = 4 * 1024 * 1024;
/** A folder being made (`.new-<pid>-<ticks>-…`) or removed (`.gone-…`); never a sandbox. */
const NEW_PREFIX = ".new-";
const GONE_PREFIX = ".gone-";

export function createStore(options: { stateDir: string }): Store {
  const root = join(options.stateDir, "sandboxes");
  const dir = (id: SandboxId) => {
    if (!SandboxId.safeParse(id).success)
      throw new CaissonError("invalid", `"${id}" is not a sandbox id`, { hint: "It looks like sb_k3v7q2m5x4ab." });
    return join(root, id);
  };
  const store: Store = {
    dir,
    newId: () => newId("sb"),
    ownerOf: currentProcess,
    ownerAlive: isProcessAlive,
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
        // Another process was faster to write it down.
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
        hint: `\`caisson sandbox rm ${id}\` removes what is left of it.`,
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
        // A folder that went away between the listing and the reading was removed by somebody else.
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
      const gone = join(root, `${GONE_PREFIX}${id}-${randomLetters(8)}`);
      try {
        await rename(target, gone);
      } catch (error) {
        if (isErrno(error, "ENOENT")) return;
        throw error;
      }
      await rm(gone, { recursive: true, force: true });
    },
  };
  return store;
}

/** Whether it is one that a runtime keeps ready, and nobody's yet: no user sees it. */
export function isWaiting({ details }: Pick<SandboxRecord, "details">): boolean {
  return typeof details === "object" && details !== null && "waiting" in details && details.waiting === true;
}

/** What a user sees of a record. */
export function infoOf(record: SandboxRecord): SandboxInfo {
  const { id, runtime, state, createdAt, spec, limits, warnings } = record;
  const { template, workspace, mounts, network, allowRoot, keep, labels, name, owner = LOCAL_OWNER } = spec;
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

/** True for a sandbox that died with its creator and is for `sweep` to remove. */
export function isOrphan(record: SandboxRecord): boolean {
  return record.owner !== null && !record.spec.keep && !isProcessAlive(record.owner);
}

/** The same, or its creator died over making it. */
export function isToSweep(record: SandboxRecord): boolean {
  return isOrphan(record) || (["creating", "completing"].includes(record.state) && !isProcessAlive(record.owner));
}

function makerAlive(name: string): boolean {
  const [pid, ticks] = name.slice(NEW_PREFIX.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(ticks) });
}

type ReadOutcome = { record: SandboxRecord } | { record?: undefined; missing: boolean; reason: string };

/** Of every state folder: a process has several stores on the same one. */
const knownRecords = new KnownFiles<ReadOutcome>({ max: 4096 });

async function readRecord(dir: string): Promise<ReadOutcome> {
  const path = join(dir, RECORD_NAME);
  try {
    const outcome = await knownRecords.get(path, ({ sizeBytes }) => parseRecord(path, sizeBytes));
    if (outcome === null) return { missing: !(await isDirectory(dir)), reason: `${RECORD_NAME} is not there` };
    if (outcome.record === undefined) return outcome;
    const { record } = outcome;
    if (!dir.endsWith(`/${record.id}`)) return { missing: false, reason: `it names ${record.id}` };
    const { labels = record.spec.labels } = await readLabels(dir);
    return { record: { ...record, spec: { ...record.spec, labels } } };
  } catch (error) {
    return { missing: isErrno(error, "ENOENT") && !(await isDirectory(dir)), reason: `${RECORD_NAME} cannot be read: ${codeOf(error)}` };
  }
}

/** Throws where it cannot be read. */
async function parseRecord(path: string, sizeBytes: number): Promise<ReadOutcome> {
  if (sizeBytes > RECORD_BYTES_MAX) return { missing: false, reason: `${path} has ${sizeBytes} bytes` };
  const value = jsonOrNull(await readFile(path, "utf8"));
  if (value === null) return { missing: false, reason: `${RECORD_NAME} is not JSON` };
  const parsed = checkValue(SandboxRecord, value);
  return parsed.success ? { record: parsed.data } : { missing: false, reason: tellProblems(parsed.problems) };
}

/** Of a sandbox that another process removes, which takes away what is being written, too. */
const rethrow = (id: SandboxId) => (error: unknown) => {
  if (!isErrno(error, "ENOENT")) throw error;
  throw new CaissonError("not_found", `the sandbox ${id} was removed by another process meanwhile`, { cause: error });
};

/** For callers that record a sandbox's end: a missing record has ended already. */
export function ifRemoved(error: unknown): void {
  if (!(error instanceof CaissonError && error.code === "not_found")) throw error;
}

const noSandbox = (id: SandboxId) =>
  new CaissonError("not_found", `there is no sandbox ${id}`, { hint: "`caisson sandbox ls` lists them." });

async function isFromBeforeBoot(path: string): Promise<boolean> {
  const { mtimeMs } = await lstat(path).catch(() => ({ mtimeMs: Date.now() }));
  return mtimeMs < Date.now() - uptime() * 1000 - CLOCK_ERROR_MS;
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch {
    return false;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
