import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";
import { uploadOfTree } from "../../sandbox/uploaded-tree.ts";
import { keepAppliedDiff } from "../../workspace/applied-diffs.ts";
import { lookAtFolder } from "../../workspace/apply-recovery.ts";
import type { Changes } from "../../workspace/change.ts";
import { findChanges } from "../../workspace/changes.ts";
import type { IgnoredFiles } from "../../workspace/ignore-rules.ts";
import type { ChangedWork } from "./changed-work.ts";
import type { ChangesOptions } from "./session-changes.ts";

/** In the sandbox's folder, with which it is removed. */
const APPLIED_NAME = "applied.json";

/**
 * Reads the changes of a sandbox without a session, through its guest. Throws `invalid` if its workspace is the user's
 * folder itself.
 */
export function workOfSandbox(record: SandboxRecord, options: ChangesOptions & { store: Store }): ChangedWork {
  const { id } = record;
  const file = join(options.store.dir(id), APPLIED_NAME);
  const readApplied = async () => {
    const record = jsonOrNull(await ifErrno(readFile(file, "utf8"), ["ENOENT"], "{}"));
    if (typeof record === "object" && record !== null) return new Map(Object.entries(record as Record<string, string>));
    throw new CaissonError("internal", `${file} is damaged`, {
      hint: "Remove the file. Files that were applied before then count as changed by you.",
    });
  };
  return {
    id,
    kind: "sandbox",
    what: `the sandbox ${id}`,
    source: sourceOf(record, options),
    commit: null,
    notesBefore: true,
    async changes({ at, since, ...ignoring } = {}) {
      if (at !== undefined || since !== undefined)
        throw new CaissonError("unsupported", `the sandbox ${id} has no files from earlier steps`);
      return await changesIn(record, { ...options, applied: await readApplied(), ignoring });
    },
    readApplied,
    async noteApplied(files) {
      const part = `${file}.${randomLetters(8)}.tmp`;
      await writeFile(part, JSON.stringify(Object.fromEntries([...(await readApplied()), ...files])), { mode: 0o600 });
      await rename(part, file);
    },
    keepApplied: (applied) => keepAppliedDiff(options.store.dir(id), { ...applied, at: new Date().toISOString() }),
    record: async () => undefined,
  };
}

function sourceOf({ id, runtime, spec: { workspace } }: SandboxRecord, { stateDir }: { stateDir: string }): WorkspaceSource {
  if (workspace.kind === "empty") return { kind: "empty" };
  const { origin } = workspace;
  // Its lower folder is an upload.
  const upload = origin === undefined ? null : uploadOfTree(stateDir, workspace.path);
  if (origin !== undefined && upload !== null) return { kind: "upload", upload, origin };
  if (workspace.access === "overlay" && runtime !== "host") return { kind: "folder", path: workspace.path };
  throw new CaissonError("invalid", `the workspace of ${id} is ${workspace.path} itself, so there is nothing to apply`, {
    hint: "Without :rw and :ro, a sandbox has its own copy of the folder.",
  });
}

async function changesIn(
  { id, runtime: name, spec: config, createdAt }: SandboxRecord,
  options: ChangesOptions & { applied: ReadonlyMap<string, string>; ignoring?: IgnoredFiles },
): Promise<Changes> {
  const { stateDir, applied } = options;
  const { workspace, template, deniedPaths } = config;
  const runtime = await options.runtime(name);
  const lower = workspace.kind === "folder" ? workspace.path : await emptyFolder(stateDir);
  // A sandbox created from a snapshot has changes below its own layer, too.
  const isWhole = workspace.kind === "folder" && template.kind !== "snapshot";
  const folder = isWhole ? runtime.changesFolder?.(id) : undefined;
  const ignoring = workspace.kind === "empty" ? { includeIgnored: true } : (options.ignoring ?? {});
  const hidden = deniedPaths.filter((path) => path.startsWith(`${WORKSPACE}/`)).map((path) => path.slice(WORKSPACE.length + 1));
  const sandbox = await runtime.open(id, { serveNetwork: false });
  try {
    const search = {
      sandbox,
      lower,
      layers: folder === undefined ? null : [folder],
      sinceMs: Date.parse(createdAt),
      stateDir,
      applied,
      hidden,
      ignoring,
    };
    return await lookAtFolder(lower, { stateDir }, () => findChanges(search));
  } finally {
    // We only detach: its owner decides when it ends.
    await sandbox.detach();
  }
}

async function emptyFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, "empty");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
