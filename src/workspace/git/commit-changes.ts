import { basename } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Changes, FileSide, LeftOut } from "../change.ts";
import { readChanges } from "../changes.ts";
import { createIgnoreRules, IGNORE_FILE, type IgnoredFiles, type IgnoreRules } from "../ignore-rules.ts";
import { DEPTH_MAX, isGitsOwn, listInside } from "../list-inside.ts";
import { readInside } from "../read-side.ts";
import { untouchedSince } from "../walk-layer.ts";
import { type GitSource, sessionMirror } from "./git-mirror.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import { submodulesOf } from "./submodules.ts";

const CONTENT_BYTES_MAX = 1024 * 1024 * 1024;

interface TreeEntry {
  mode: string;
  blob: string;
  sizeBytes: number;
  /** The mirror with its content. */
  mirror: string;
}

interface CommitOptions {
  stateDir: string;
  git: Pick<GitOptions, "path" | "home">;
  source: GitSource;
  /** The owner of the session. */
  owner: string;
  commit: string;
}

/**
 * Finds the differences between the commit that a git workspace started from and the workspace inside. The old side
 * comes from the host's mirror, as objects, and git never reads what the agent wrote. `layer` is the host folder that
 * collects the workspace's files, and `folders` its folders after the checkout at `preparedAtMs`: files untouched since
 * then are not read. Without a layer every file is read. Throws `not_found` if the mirror no longer has the commit,
 * `too_large`.
 */
export async function findCommitChanges(
  options: CommitOptions & {
    sandbox: Sandbox;
    layer: string | null;
    folders: Readonly<Record<string, number>>;
    preparedAtMs: number;
    ignoring?: IgnoredFiles;
  },
): Promise<Changes> {
  const tree = await readTree(options, { prefix: "", depth: 0 });
  const leftOut: LeftOut[] = [];
  const entries = await listInside(options.sandbox, "", { depth: DEPTH_MAX, leftOut });
  const { layer, folders, preparedAtMs: sinceMs } = options;
  const untouched = layer === null ? new Set<string>() : await untouchedSince(layer, { sinceMs, folders });
  const candidates: string[] = [];
  const seen = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === "directory" || entry.name.split("/").some(isGitsOwn)) continue;
    seen.add(entry.name);
    const before = tree.get(entry.name);
    const same = before !== undefined && before.sizeBytes === entry.sizeBytes && untouched.has(entry.name);
    if (!same) candidates.push(entry.name);
  }
  for (const path of tree.keys()) if (!seen.has(path)) candidates.push(path);
  const contents = await readBlobs(
    candidates.flatMap((path) => tree.get(path) ?? []),
    options.git,
  );
  return await readChanges({
    candidates,
    leftOut,
    rules: await rulesOf(tree, options.git),
    ...(options.ignoring && { ignoring: options.ignoring }),
    after: (path) => readInside(options.sandbox, `${WORKSPACE}/${path}`),
    before: async (path) => sideOf(tree.get(path), contents),
  });
}

/** Returns the ignore rules in the commit. */
async function rulesOf(tree: ReadonlyMap<string, TreeEntry>, git: CommitOptions["git"]): Promise<IgnoreRules> {
  const isRules = ([path, entry]: [string, TreeEntry]) => basename(path) === IGNORE_FILE && entry.mode !== "120000";
  const files = new Map([...tree].filter(isRules));
  const contents = await readBlobs([...files.values()], git);
  return createIgnoreRules(async (folder) => {
    const entry = files.get(folder === "" ? IGNORE_FILE : `${folder}/${IGNORE_FILE}`);
    return entry === undefined ? null : (contents.get(entry.blob)?.toString("utf8") ?? null);
  });
}

function sideOf(entry: TreeEntry | undefined, contents: ReadonlyMap<string, Buffer>): FileSide | null {
  if (entry === undefined) return null;
  const content = contents.get(entry.blob);
  if (!content) throw new CaissonError("internal", `the mirror lacks ${entry.blob}`);
  if (entry.mode === "120000") return { kind: "link", mode: 0o777, content };
  return { kind: "file", mode: entry.mode === "100755" ? 0o755 : 0o644, content };
}

/** Returns every file of a commit, including those of its submodules if they were checked out. */
async function readTree(options: CommitOptions, at: { prefix: string; depth: number }): Promise<Map<string, TreeEntry>> {
  const { source, commit, git } = options;
  const mirror = sessionMirror(options.stateDir, { ...options, url: source.url });
  const text = await hostGit(["ls-tree", "-r", "-l", "-z", "--full-tree", commit], { ...git, gitDir: mirror }).catch((error: unknown) => {
    throw new CaissonError("not_found", `the commit ${commit} is no longer in the mirror`, {
      hint: "The next run on the same address fetches it again.",
      cause: error,
    });
  });
  const tree = new Map<string, TreeEntry>();
  for (const line of text.toString("utf8").split("\0")) {
    const match = /^(\d{6}) blob ([0-9a-f]+) +(\d+)\t([\s\S]+)$/.exec(line);
    if (match?.[4]) tree.set(at.prefix + match[4], { mode: match[1] ?? "", blob: match[2] ?? "", sizeBytes: Number(match[3]), mirror });
  }
  if (!source.submodules) return tree;
  for (const submodule of await submodulesOf({ source, mirror, commit, depth: at.depth }, git)) {
    const below = { ...options, source: submodule.source, commit: submodule.source.ref };
    const files = await readTree(below, { prefix: `${at.prefix}${submodule.path}/`, depth: at.depth + 1 });
    for (const [path, entry] of files) tree.set(path, entry);
  }
  return tree;
}

async function readBlobs(entries: readonly TreeEntry[], git: CommitOptions["git"]): Promise<Map<string, Buffer>> {
  const contents = new Map<string, Buffer>();
  if (entries.reduce((sum, entry) => sum + entry.sizeBytes, 0) > CONTENT_BYTES_MAX)
    throw new CaissonError("too_large", `the changed files exceed ${CONTENT_BYTES_MAX} bytes in total`);
  for (const [mirror, some] of Map.groupBy(entries, (entry) => entry.mirror)) {
    const names = [...new Set(some.map((entry) => entry.blob))];
    const input = `${names.join("\n")}\n`;
    const output = await hostGit(["cat-file", "--batch"], { ...git, gitDir: mirror, input, outputBytesMax: 2 * CONTENT_BYTES_MAX });
    let at = 0;
    for (const name of names) {
      const end = output.indexOf("\n", at);
      const size = Number(/^[0-9a-f]+ blob (\d+)$/.exec(output.toString("latin1", at, end))?.[1]);
      if (!Number.isInteger(size))
        throw new CaissonError("internal", `the mirror lacks ${name}`, {
          hint: "The mirror is damaged; the next run on the same address recreates it.",
        });
      contents.set(name, output.subarray(end + 1, end + 1 + size));
      at = end + 1 + size + 1;
    }
  }
  return contents;
}
