import { mkdir, readdir, readFile, rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { RuntimeName, SnapshotId } from "../../../contract/ids.ts";
import { ProcessIdentity } from "../../../contract/process-identity.ts";
import { TemplateConfig } from "../../../contract/template/template.ts";
import { Owner } from "../../../contract/token/owner.ts";
import { type Crashpoint, noCrash } from "../../../lib/crashpoint.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { replaceFile, sweepTemporaries } from "../../../lib/replace-file.ts";
import { currentProcess, isProcessAlive } from "../../../sandbox/process-identity.ts";
import type { RuntimeSet } from "../../../sandbox/runtime-set.ts";
import type { TemplateStore } from "../../built-templates/template-store.ts";
import { BUILD_SNAPSHOT } from "../../vocabulary/station-names.ts";

/** A step whose files are known: everything it depends on is in its key. */
export const StepRecord = z.object({
  version: z.literal(1),
  key: z.string().regex(/^[0-9a-f]{64}$/),
  runtime: RuntimeName,
  snapshot: SnapshotId,
  /** The step whose files it changed; null for a step on a base. */
  parent: z.string().nullable(),
  /** Whether /tmp had files, which a snapshot does not contain. */
  hasTmp: z.boolean(),
  text: z.string(),
  bytes: z.number(),
  createdAt: z.iso.datetime(),
});
export type StepRecord = z.infer<typeof StepRecord>;

/** How many images' settings are remembered. */
const BASES_MAX = 1000;

/** The settings of an image that a FROM named, so that a repeated build starts no sandbox to read them. */
const BaseRecord = z.object({ version: z.literal(1), config: TemplateConfig });

const HIDDEN = ".hidden";

interface Folders {
  root: string;
  steps: string;
  bases: string;
  active: string;
}

/** How many builds of one owner may run at the same time. */
const BUILDS_MAX = 8;

const ActiveRecord = z.object({ holder: ProcessIdentity, owner: Owner });

type UsedStep = StepRecord & { lastUsedMs: number };

/**
 * The build cache: one record for each step, with the snapshot of its files. A record appears complete or not at all.
 */
export interface StepStore {
  /** Returns a step whose snapshot still exists, and notes its use. */
  find(key: string): Promise<StepRecord | null>;
  save(record: StepRecord): Promise<void>;
  /** Returns the size of a snapshot. */
  bytesOf(at: Pick<StepRecord, "runtime" | "snapshot">): Promise<number>;
  findBase(key: string): Promise<TemplateConfig | null>;
  saveBase(key: string, config: TemplateConfig): Promise<void>;
  /** The archive with a step's /tmp. */
  tmpFile(key: string): string;
  /** Publishes an archive that was written to a temporary path. */
  saveTmp(key: string, draft: string): Promise<void>;
  /**
   * Registers a build, so that no other process removes its snapshots while it runs. Throws `busy` if too many builds
   * of the owner run.
   */
  begin(build: string, owner: string): Promise<AsyncDisposable>;
  list(): Promise<UsedStep[]>;
  /** Lists the steps that no template uses, oldest first; a template also uses the steps below its own. */
  unused(): Promise<UsedStep[]>;
  /** Removes a step and its snapshot. Returns false if something is built on it, or a template uses it. */
  remove(key: string): Promise<boolean>;
  /** Removes snapshots and files that builds left behind when their process died. */
  sweep(): Promise<void>;
  /** Sweeps if a build's process died: it could not remove its own registration. */
  sweepAfterDeath(): Promise<void>;
}

export interface StepStoreOptions {
  stateDir: string;
  runtimes: RuntimeSet;
  templates: TemplateStore;
  crashpoint?: Crashpoint | undefined;
}

export function createStepStore(options: StepStoreOptions): StepStore {
  const { crashpoint = noCrash } = options;
  const root = join(options.stateDir, "builds");
  const folders = { root, steps: join(root, "steps"), bases: join(root, "bases"), active: join(root, "active") };
  const snapshots = snapshotSets(options.runtimes);
  const store: StepStore = {
    async find(key) {
      const record = await readRecord(join(folders.steps, `${key}.json`), StepRecord);
      if (record === null || !(await snapshots.has(record))) return null;
      if (record.hasTmp && lstatOrNull(store.tmpFile(key)) === null) return null;
      const now = new Date();
      await ifErrno(utimes(join(folders.steps, `${key}.json`), now, now), ABSENT, undefined);
      return record;
    },
    async save(record) {
      await mkdir(folders.steps, { recursive: true, mode: 0o700 });
      crashpoint("build.step:before");
      await replaceFile(folders.steps, `${record.key}.json`, JSON.stringify(record));
      crashpoint("build.step:after");
      snapshots.add(record);
    },
    async bytesOf({ runtime, snapshot }) {
      return (await (await options.runtimes.get(runtime)).snapshots()).find(({ id }) => id === snapshot)?.bytes ?? 0;
    },
    findBase: async (key) => (await readRecord(join(folders.bases, `${key}.json`), BaseRecord))?.config ?? null,
    async saveBase(key, config) {
      await mkdir(folders.bases, { recursive: true, mode: 0o700 });
      crashpoint("build.base:before");
      await replaceFile(folders.bases, `${key}.json`, JSON.stringify({ version: 1, config }));
      crashpoint("build.base:after");
    },
    tmpFile: (key) => join(folders.steps, `${key}.tmp.tar`),
    async saveTmp(key, draft) {
      crashpoint("build.tmp:before");
      await rename(draft, store.tmpFile(key));
      crashpoint("build.tmp:after");
    },
    async begin(build, owner) {
      for (const folder of [folders.active, folders.steps]) await mkdir(folder, { recursive: true, mode: 0o700 });
      const { active } = await registeredBuilds(folders.active);
      if ([...active.values()].filter((each) => each === owner).length >= BUILDS_MAX)
        throw new CaissonError("busy", `${BUILDS_MAX} builds are running already`, { hint: "Wait for one of them to end." });
      const name = `${build}.json`;
      crashpoint("build.registered:before");
      await replaceFile(folders.active, name, JSON.stringify({ holder: currentProcess(), owner }));
      crashpoint("build.registered:after");
      return {
        async [Symbol.asyncDispose]() {
          crashpoint("build.ended:before");
          await rm(join(folders.active, name), { force: true });
          crashpoint("build.ended:after");
        },
      };
    },
    async list() {
      const found: UsedStep[] = [];
      for (const name of await ifErrno(readdir(folders.steps), ABSENT, [])) {
        const record = name.endsWith(".json") ? await readRecord(join(folders.steps, name), StepRecord) : null;
        if (record !== null) found.push({ ...record, lastUsedMs: lstatOrNull(join(folders.steps, name))?.mtimeMs ?? 0 });
      }
      return found.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    },
    async unused() {
      const all = await store.list();
      const used = new Set<string>();
      const byKey = new Map(all.map((step) => [step.key, step]));
      for (const { snapshot } of await options.templates.all()) {
        let step = all.find((each) => each.snapshot === snapshot);
        while (step !== undefined && !used.has(step.key)) {
          used.add(step.key);
          step = step.parent === null ? undefined : byKey.get(step.parent);
        }
      }
      return all.filter(({ key }) => !used.has(key));
    },
    remove: (key) => removeStep(key, { ...options, folders }),
    sweep: () => sweepBuilds(store, { ...options, folders }),
    async sweepAfterDeath() {
      if ((await registeredBuilds(folders.active)).dead.length > 0) await store.sweep();
    },
  };
  return store;
}

/**
 * Hides the record first, so that no further build finds it. A build that found it before is either still active or
 * has saved its template, and then the record comes back.
 */
async function removeStep(
  key: string,
  { runtimes, templates, folders, crashpoint = noCrash }: StepStoreOptions & { folders: Folders },
): Promise<boolean> {
  const path = join(folders.steps, `${key}.json`);
  const hidden = join(folders.steps, `${key}${HIDDEN}`);
  const record = await readRecord(path, StepRecord);
  if (record === null) return false;
  crashpoint("build.hidden:before");
  await rename(path, hidden);
  crashpoint("build.hidden:after");
  const isUsed =
    (await registeredBuilds(folders.active)).active.size > 0 ||
    (await templates.all()).some(({ snapshot }) => snapshot === record.snapshot);
  if (isUsed || !(await removeUnused(runtimes, record))) {
    await rename(hidden, path);
    return false;
  }
  crashpoint("build.removed:before");
  for (const file of [hidden, join(folders.steps, `${key}.tmp.tar`)]) await rm(file, { force: true });
  crashpoint("build.removed:after");
  return true;
}

/** Removes a snapshot; returns false if a sandbox or another snapshot uses it. */
async function removeUnused(runtimes: RuntimeSet, { runtime, snapshot }: Pick<StepRecord, "runtime" | "snapshot">): Promise<boolean> {
  try {
    await (await runtimes.get(runtime)).removeSnapshot(snapshot);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "conflict") return false;
    if (!(error instanceof CaissonError && error.code === "not_found")) throw error;
  }
  return true;
}

async function readRecord<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema> | null> {
  const parsed = schema.safeParse(jsonOrNull(await ifErrno(readFile(path, "utf8"), ABSENT, "")));
  return parsed.success ? parsed.data : null;
}

/** The snapshots that exist, read once for each runtime: a build looks up many. */
function snapshotSets(runtimes: RuntimeSet) {
  const sets = new Map<string, Promise<Set<string>>>();
  const read = async (runtime: string) => new Set((await (await runtimes.get(runtime)).snapshots()).map(({ id }) => id));
  return {
    async has({ runtime, snapshot }: Pick<StepRecord, "runtime" | "snapshot">) {
      const known = sets.get(runtime) ?? read(runtime);
      sets.set(runtime, known);
      return (await known).has(snapshot);
    },
    add({ runtime, snapshot }: Pick<StepRecord, "runtime" | "snapshot">) {
      void sets.get(runtime)?.then((set) => set.add(snapshot));
    },
  };
}

/**
 * A finished build has recorded all its snapshots. So we list the snapshots first: one whose build is no longer active
 * afterwards, and that no record names, was left behind.
 */
async function sweepBuilds(
  store: StepStore,
  { runtimes, templates, folders, crashpoint = noCrash }: StepStoreOptions & { folders: Folders },
): Promise<void> {
  const found: { runtime: string; snapshot: string; build: string }[] = [];
  for (const name of runtimes.names) {
    if (name === "host") continue;
    for (const { id, name: label } of await snapshotsOf(runtimes, name)) {
      const build = BUILD_SNAPSHOT.exec(label ?? "")?.[1];
      if (build !== undefined) found.push({ runtime: name, snapshot: id, build });
    }
  }
  const { active, dead } = await registeredBuilds(folders.active);
  const used = new Set([...(await store.list()), ...(await templates.all())].map(({ snapshot }) => snapshot));
  // The newest first: later steps are built on earlier ones.
  for (const each of found.reverse())
    if (!active.has(each.build) && !used.has(each.snapshot))
      await removeUnused(runtimes, { runtime: each.runtime, snapshot: each.snapshot });
  crashpoint("build.swept:before");
  for (const folder of [folders.root, folders.steps, folders.bases, folders.active]) await sweepTemporaries(folder);
  await removeOldest(folders.bases, BASES_MAX);
  await removeOrphanedTmp(folders.steps, active.size > 0);
  // Last, because a death on the way must lead to another sweep.
  for (const name of dead) await rm(join(folders.active, name), { force: true });
  crashpoint("build.swept:after");
}

async function snapshotsOf(runtimes: RuntimeSet, name: string) {
  try {
    return await (await runtimes.get(name)).snapshots();
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "unavailable" || error.code === "unsupported")) return [];
    throw error;
  }
}

/** Returns the builds whose process is alive, with their owners, and the files of the others. */
async function registeredBuilds(folder: string): Promise<{ active: Map<string, string>; dead: string[] }> {
  const active = new Map<string, string>();
  const dead: string[] = [];
  for (const name of await ifErrno(readdir(folder), ABSENT, [])) {
    const record = await readRecord(join(folder, name), ActiveRecord);
    if (record !== null && isProcessAlive(record.holder)) active.set(name.slice(0, -".json".length), record.owner);
    else dead.push(name);
  }
  return { active, dead };
}

async function removeOldest(folder: string, filesMax: number): Promise<void> {
  const names = await ifErrno(readdir(folder), ABSENT, []);
  if (names.length <= filesMax) return;
  const aged = names.map((name) => ({ name, atMs: lstatOrNull(join(folder, name))?.mtimeMs ?? 0 })).sort((a, b) => a.atMs - b.atMs);
  for (const { name } of aged.slice(0, names.length - filesMax)) await rm(join(folder, name), { force: true });
}

/** An archive is published before its record, so one without a record was left behind unless a build runs. */
async function removeOrphanedTmp(folder: string, isBuilding: boolean): Promise<void> {
  if (isBuilding) return;
  const names = new Set(await ifErrno(readdir(folder), ABSENT, []));
  for (const name of names) {
    // The process that hid it died; without its snapshot, the record does not count.
    if (name.endsWith(HIDDEN)) await ifErrno(rename(join(folder, name), join(folder, name.replace(HIDDEN, ".json"))), ABSENT, undefined);
    if (!name.endsWith(".tmp.tar") || [".json", HIDDEN].some((end) => names.has(name.replace(/\.tmp\.tar$/, end)))) continue;
    await rm(join(folder, name), { force: true }).catch((error: unknown) => {
      if (!isErrno(error, "ENOENT")) throw error;
    });
  }
}
