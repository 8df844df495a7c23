import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
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

/** In the sandbox's folder, and gone with it. */
const APPLIED_NAME = "applied.json";

/**
 * The changes of a sandbox that no session has, read by its guest while it lives. Throws `invalid` for one whose
 * workspace is the user's folder itself.
 */
export function workOfSandbox(record: SandboxRecord, options: ChangesOptions & { store: Store }): ChangedWork {
  const { id } = record;
  const file = join(options.store.dir(id), APPLIED_NAME);
  const applied = async () => {
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      if (isErrno(error, "ENOENT")) return "{}";
      throw error;
    });
    const record = jsonOrNull(text);
    if (typeof record === "object" && record !== null) return new Map(Object.entries(record as Record<string, string>));
    throw new CaissonError("internal", `${file} is damaged`, {
      hint: "Remove it: then files that were applied before count as changed by you.",
    });
  };
  return {
    id,
    kind: "sandbox",
    what: `the sandbox ${id}`,
    source: sourceOf(record, options),
    commit: null,
    notesBefore: true,
    async changes({ at, ...ignoring } = {}) {
      if (at !== undefined) throw new CaissonError("unsupported", `files of the sandbox ${id} are only known as they are`);
      return await changesIn(record, { ...options, applied: await applied(), ignoring });
    },
    applied,
    async noteApplied(files) {
      const part = `${file}.${randomLetters(8)}.tmp`;
      await writeFile(part, JSON.stringify(Object.fromEntries([...(await applied()), ...files])), { mode: 0o600 });
      await rename(part, file);
    },
    keepApplied: (applied) => keepAppliedDiff(options.store.dir(id), { ...applied, at: new Date().toISOString() }),
    record: async () => undefined,
  };
}

function sourceOf({ id, runtime, spec: { workspace } }: SandboxRecord, { stateDir }: { stateDir: string }): WorkspaceSource {
  if (workspace.kind === "empty") return { kind: "empty" };
  const { origin } = workspace;
  // The folder that it is over is one that was sent here.
  const upload = origin === undefined ? null : uploadOfTree(stateDir, workspace.path);
  if (origin !== undefined && upload !== null) return { kind: "upload", upload, origin };
  if (workspace.access === "overlay" && runtime !== "host") return { kind: "folder", path: workspace.path };
  throw new CaissonError("invalid", `the workspace of ${id} is ${workspace.path} itself: there is nothing to bring there`, {
    hint: "A sandbox made without :rw and :ro has a copy of its own.",
  });
}

async function changesIn(
  { id, runtime: name, spec, createdAt }: SandboxRecord,
  options: ChangesOptions & { applied: ReadonlyMap<string, string>; ignoring?: IgnoredFiles },
): Promise<Changes> {
  const { stateDir, applied } = options;
  const { workspace, template, deniedPaths } = spec;
  const runtime = await options.runtime(name);
  const lower = workspace.kind === "folder" ? workspace.path : await emptyFolder(stateDir);
  // One that began from a snapshot has changes below its own layer, too.
  const isWhole = workspace.kind === "folder" && template.kind !== "snapshot";
  const layer = isWhole ? (runtime.changesFolder?.(id) ?? null) : null;
  const ignoring = workspace.kind === "empty" ? { includeIgnored: true } : (options.ignoring ?? {});
  const hidden = deniedPaths.filter((path) => path.startsWith(`${WORKSPACE}/`)).map((path) => path.slice(WORKSPACE.length + 1));
  const sandbox = await runtime.open(id, { serveNetwork: false });
  try {
    const asked = { sandbox, lower, layer, sinceMs: Date.parse(createdAt), stateDir, applied, hidden, ignoring };
    return await lookAtFolder(lower, { stateDir }, () => findChanges(asked));
  } finally {
    // Its owner's business is none of ours.
    await sandbox.detach();
  }
}

async function emptyFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, "empty");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
