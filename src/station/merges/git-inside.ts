import { CaissonError } from "../../contract/error/error.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { type FileSide, gitMode } from "../../workspace/change.ts";
import type { ChangedFiles } from "./file-tree.ts";

/** In the sandbox's own temporary file system: separate from any real repository, and removed with the sandbox. */
const GIT_DIR = "/tmp/caisson-merge.git";
const OUTPUT_BYTES_MAX = 512 * 1024 * 1024;
const GIT_MS_MAX = 10 * 60_000;
/** The name of what has been merged so far; sessions are `side-1`, `side-2` … Conflict markers contain these names. */
export const MERGED = "merged";
export const sideName = (index: number) => `side-${index + 1}`;

/** Ignores all settings: those of the machine, of the user, and of the files to merge. */
const env = {
  GIT_DIR,
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "merge.conflictStyle",
  GIT_CONFIG_VALUE_0: "diff3",
  GIT_CONFIG_KEY_1: "core.hooksPath",
  GIT_CONFIG_VALUE_1: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "Caisson",
  GIT_AUTHOR_EMAIL: "merge@localhost",
  GIT_AUTHOR_DATE: "1000000000 +0000",
  GIT_COMMITTER_NAME: "Caisson",
  GIT_COMMITTER_EMAIL: "merge@localhost",
  GIT_COMMITTER_DATE: "1000000000 +0000",
  LC_ALL: "C",
};

/**
 * Written to the repository's own attributes, which override every `.gitattributes`, so that no filter or driver of a
 * session runs.
 */
const ATTRIBUTES = "* !merge !diff -text !eol -filter -ident !working-tree-encoding !conflict-marker-size\n";

/** One version of a conflicted file, in git's terms. */
export interface Stage {
  mode: string;
  object: string;
}

export interface MergedTree {
  /** A commit with the whole tree, including the conflicts. */
  commit: string;
  /** For each path, the original (1), the version merged so far (2) and the other session's version (3). */
  conflicted: ReadonlyMap<string, ReadonlyMap<1 | 2 | 3, Stage>>;
}

/** Runs git in a separate sandbox, on files of our choice. Throws `unsupported` without git. */
export async function openGit(sandbox: Sandbox) {
  const git = (argv: readonly string[], input?: Uint8Array) => runGit(sandbox, argv, input);
  const text = async (argv: readonly string[], input?: Uint8Array) => (await git(argv, input)).toString("utf8").trim();
  await git(["init", "--quiet", "--bare", "--template=", GIT_DIR]);
  await sandbox.writeFile(`${GIT_DIR}/info/attributes`, Buffer.from(ATTRIBUTES), { parents: true });

  return {
    /** Creates a commit of the common base, and one of each side. */
    async load(base: ReadonlyMap<string, FileSide>, sides: Readonly<Record<string, ChangedFiles>>): Promise<void> {
      const pieces = [commitHead("base", "1", null), ...fileCommands(base)];
      for (const [index, [name, files]] of Object.entries(sides).entries())
        pieces.push(commitHead(name, String(index + 2), "1"), ...fileCommands(files));
      await git(["fast-import", "--quiet", "--done", "--date-format=raw"], Buffer.concat([...pieces, Buffer.from("done\n")]));
    },
    commitOf: (name: string) => text(["rev-parse", "--verify", `refs/heads/${name}`]),
    async merge(ours: string, theirs: string): Promise<MergedTree> {
      await git(["update-ref", `refs/heads/${MERGED}`, ours]);
      const output = await git(["merge-tree", "--write-tree", "-z", "--no-messages", MERGED, theirs]);
      const [tree = "", ...lines] = output.toString("utf8").split("\0");
      const commit = await text(["commit-tree", tree, "-p", "refs/heads/base", "-m", "merged"]);
      return { commit, conflicted: stagesIn(lines) };
    },
    /** Returns the contents of objects by name. */
    async contents(objects: readonly string[]): Promise<Map<string, Buffer>> {
      const names = [...new Set(objects)];
      if (names.length === 0) return new Map();
      return contentsIn(await git(["cat-file", "--batch"], Buffer.from(`${names.join("\n")}\n`)), names);
    },
    /** Returns the files of a commit by path. */
    async filesOf(commit: string): Promise<Map<string, Stage>> {
      const output = (await git(["ls-tree", "-r", "-z", "--full-tree", commit])).toString("utf8");
      const entries = output.split("\0").flatMap((line) => {
        const [, mode, object, path] = /^(\d{6}) blob ([0-9a-f]+)\t([\s\S]+)$/.exec(line) ?? [];
        return mode === undefined || object === undefined || path === undefined ? [] : [[path, { mode, object }] as const];
      });
      return new Map(entries);
    },
    /** Changes the workspace from one commit to another. */
    async checkOut(from: string, to: string): Promise<void> {
      const raw = (await git(["diff-tree", "-r", "-z", "--no-renames", "--raw", from, to])).toString("utf8").split("\0");
      const written: string[] = [];
      for (let at = 0; at + 1 < raw.length; at += 2) {
        const [, mode, object, status] = /^:\d+ (\d+) \S+ (\S+) (\w)/.exec(raw[at] ?? "") ?? [];
        const path = raw[at + 1] ?? "";
        if (status === "D") await removeFile(sandbox, path);
        else written.push(`${mode} ${object}\t${path}`);
      }
      if (written.length === 0) return;
      await git(["update-index", "-z", "--index-info"], Buffer.from(`${written.join("\0")}\0`));
      await git([`--work-tree=${WORKSPACE}`, "checkout-index", "--all", "--force", "--quiet"]);
      await git(["read-tree", "--empty"]);
    },
  };
}

export type GitInside = Awaited<ReturnType<typeof openGit>>;

async function runGit(sandbox: Sandbox, argv: readonly string[], input?: Uint8Array): Promise<Buffer> {
  const isMerge = argv[0] === "merge-tree";
  const { ended, stdoutBytes, stderr, truncated } = await runCommand(sandbox, {
    argv: ["git", ...argv],
    env,
    cwd: argv.some((word) => word.startsWith("--work-tree")) ? WORKSPACE : "/tmp",
    timeoutMs: GIT_MS_MAX,
    collectBytesMax: OUTPUT_BYTES_MAX,
    ...(input && { input }),
  }).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found")
      throw new CaissonError("unsupported", "the sandbox for the merge has no git", {
        hint: "Install git on this machine.",
        cause: error,
      });
    throw error;
  });
  if (truncated) throw new CaissonError("too_large", "git's output about the merge is too large");
  if (ended.kind === "exited" && (ended.exitCode === 0 || (isMerge && ended.exitCode === 1))) return Buffer.from(stdoutBytes);
  const outcome = ended.kind === "exited" ? `ended with ${ended.exitCode}` : ended.kind;
  throw new CaissonError("unavailable", `git ${argv[0]} inside the sandbox ${outcome}: ${stderr.trim().slice(0, 500)}`, {
    hint: "Merging requires git 2.38 or newer in the sandbox.",
  });
}

function commitHead(name: string, mark: string, parent: string | null): Buffer {
  const from = parent === null ? "" : `from :${parent}\n`;
  return Buffer.from(`commit refs/heads/${name}\nmark :${mark}\ncommitter Caisson <merge@localhost> 0 +0000\ndata 0\n${from}`);
}

function fileCommands(files: ReadonlyMap<string, FileSide | null>): Buffer[] {
  // Removals come first, because a file may give way to a folder of the same name.
  const sorted = [...files].sort(([, a], [, b]) => Number(a !== null) - Number(b !== null));
  return sorted.flatMap(([path, side]) => {
    if (side === null) return [Buffer.from(`D ${quotePath(path)}\n`)];
    return [Buffer.from(`M ${gitMode(side)} inline ${quotePath(path)}\ndata ${side.content.length}\n`), side.content, Buffer.from("\n")];
  });
}

/** Quotes any path as git's own programs do. */
function quotePath(path: string): string {
  const bytes = [...Buffer.from(path)].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte < 0x20 || byte >= 0x7f ? `\\${byte.toString(8).padStart(3, "0")}` : String.fromCharCode(byte);
  });
  return `"${bytes.join("")}"`;
}

function stagesIn(lines: readonly string[]): Map<string, Map<1 | 2 | 3, Stage>> {
  const conflicted = new Map<string, Map<1 | 2 | 3, Stage>>();
  for (const line of lines) {
    const [, mode, object, stage, path] = /^(\d{6}) ([0-9a-f]+) ([123])\t([\s\S]+)$/.exec(line) ?? [];
    if (mode === undefined || object === undefined || path === undefined) continue;
    const stages = conflicted.get(path) ?? new Map<1 | 2 | 3, Stage>();
    conflicted.set(path, stages.set(Number(stage) as 1 | 2 | 3, { mode, object }));
  }
  return conflicted;
}

function contentsIn(output: Buffer, names: readonly string[]): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  let at = 0;
  for (const name of names) {
    const end = output.indexOf("\n", at);
    const size = Number(/^[0-9a-f]+ blob (\d+)$/.exec(output.toString("latin1", at, end))?.[1]);
    if (!Number.isInteger(size)) throw new CaissonError("internal", `git inside the sandbox did not return ${name}`);
    contents.set(name, output.subarray(end + 1, end + 1 + size));
    at = end + 1 + size + 1;
  }
  return contents;
}

/** Removes a file and the folders that this leaves empty, because a diff does not show empty folders. */
export async function removeFile(sandbox: Sandbox, path: string): Promise<void> {
  await sandbox.remove(`${WORKSPACE}/${path}`).catch(ifAbsent);
  for (let folder = parentOf(path); folder !== ""; folder = parentOf(folder)) {
    const removing = sandbox.remove(`${WORKSPACE}/${folder}`).then(() => true);
    if (!(await removing.catch(falseIfNeeded))) return;
  }
}

const parentOf = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");

/** A folder stays if it has other files, is a mount point, or belongs to another user. */
function falseIfNeeded(error: unknown): false {
  if (error instanceof CaissonError && ["not_found", "conflict", "busy", "denied"].includes(error.code)) return false;
  throw error;
}

function ifAbsent(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
}
