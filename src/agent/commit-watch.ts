import { constants, inflateSync } from "node:zlib";
import { CaissonError } from "../contract/error/error.ts";
import { COMMIT_SUBJECT_CHARACTERS_MAX, type NewRunEvent } from "../contract/run/run-event.ts";
import { ignore, ignoring } from "../lib/failures.ts";
import { WORKSPACE } from "../sandbox/path.ts";
import type { FileInfo, Sandbox } from "../sandbox/sandbox.ts";

/** Finds the commits that commands create in the workspace's repository. */
export interface CommitWatch {
  /** Returns the commits since the last look, oldest first. All of it was written inside, so it is only data. */
  look(sandbox: Sandbox): Promise<NewRunEvent[]>;
}

/** The most commits and branches that one look finds. */
const COMMITS_MAX = 20;
const BRANCHES_MAX = 100;
const ENTRIES_MAX = 1000;
const BRANCH_DEPTH_MAX = 5;
const REF_BYTES_MAX = 1024;
/** A commit is a few hundred bytes; its message may be longer than we read. */
const OBJECT_BYTES_MAX = 64 * 1024;
const INFLATED_BYTES_MAX = 1024 * 1024;
/** File times may be this much behind the clock. */
const GRAIN_MS = 50;

const GIT = `${WORKSPACE}/.git`;
const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

interface Tip {
  branch: string | null;
  sha: string;
}

interface Commit {
  subject: string;
  parents: string[];
  writtenMs: number;
}

/**
 * Creates a watch for commits since a time. It needs no git and no process: it reads times and small files through the
 * sandbox, usually two times. A commit counts if its object was written since then. So a check out of older commits
 * does not count, and neither does a fetch that brings a pack.
 */
export function createCommitWatch({ sinceMs }: { sinceMs: number }): CommitWatch {
  let fromMs = sinceMs;
  const seen = new Set<string>();
  return {
    async look(sandbox) {
      const startMs = Date.now();
      const limitMs = fromMs - GRAIN_MS;
      const found = await readable(async () => await newCommits(sandbox, limitMs, seen));
      if (found === null) return [];
      fromMs = startMs;
      return found;
    },
  };
}

/** Returns null if the repository cannot be read now: it may change at this moment, or never have been one. */
async function readable<Result>(work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

async function newCommits(sandbox: Sandbox, limitMs: number, seen: Set<string>): Promise<NewRunEvent[]> {
  const isNew = (info: FileInfo | undefined) => info !== undefined && info.modifiedMs >= limitMs;
  const stats = await Promise.all(
    [GIT, `${GIT}/refs/heads`].map((path) => ignore(sandbox.stat(path, { follow: false }), "it may be missing")),
  );
  if (stats[0]?.kind !== "directory" || !stats.some(isNew)) return [];
  const remote = new Set(await remoteTips(sandbox));
  const events: NewRunEvent[] = [];
  for (const tip of await changedTips(sandbox, limitMs)) {
    const line = await newestOf(tip, {
      sandbox,
      limitMs,
      isKnown: (sha) => seen.has(sha) || remote.has(sha),
      left: COMMITS_MAX - events.length,
    });
    for (const event of line) {
      if (event.type === "git.committed") seen.add(event.data.sha);
      events.push(event);
    }
  }
  return events;
}

/** Returns the new commits that lead to a tip, oldest first. */
async function newestOf(
  { branch, sha: tip }: Tip,
  options: { sandbox: Sandbox; limitMs: number; isKnown: (sha: string) => boolean; left: number },
): Promise<NewRunEvent[]> {
  const events: NewRunEvent[] = [];
  for (let sha: string | undefined = tip; sha !== undefined && !options.isKnown(sha); ) {
    const commit: Commit | null = await readCommit(sha, options.sandbox);
    if (commit === null || commit.writtenMs < options.limitMs) break;
    if (events.length >= options.left) break;
    const data = { sha, subject: commit.subject, branch, parents: commit.parents.length };
    events.unshift({ type: "git.committed", data });
    sha = commit.parents[0];
  }
  return events;
}

/** Returns the branches that moved since a time, and HEAD if it is on none. */
async function changedTips(sandbox: Sandbox, limitMs: number): Promise<Tip[]> {
  const tips: Tip[] = [];
  for (const { name } of (await refsIn(`${GIT}/refs/heads`, sandbox))
    .filter(({ modifiedMs }) => modifiedMs >= limitMs)
    .slice(0, BRANCHES_MAX)) {
    const sha = await shaIn(`${GIT}/refs/heads/${name}`, sandbox);
    if (sha !== null) tips.push({ branch: name.slice(0, COMMIT_SUBJECT_CHARACTERS_MAX), sha });
  }
  const detached = await shaIn(`${GIT}/HEAD`, sandbox);
  if (detached !== null) tips.push({ branch: null, sha: detached });
  return tips;
}

async function remoteTips(sandbox: Sandbox): Promise<string[]> {
  const refs = await refsIn(`${GIT}/refs/remotes`, sandbox);
  return (await Promise.all(refs.slice(0, BRANCHES_MAX).map(({ name }) => shaIn(`${GIT}/refs/remotes/${name}`, sandbox)))).flatMap(
    (sha) => sha ?? [],
  );
}

async function refsIn(folder: string, sandbox: Sandbox): Promise<FileInfo[]> {
  const listing = await ignore(sandbox.list(folder, { depth: BRANCH_DEPTH_MAX, entriesMax: ENTRIES_MAX }), "it may be missing");
  return (listing?.entries ?? []).filter(({ kind, name }) => kind === "file" && !name.endsWith(".lock"));
}

async function shaIn(path: string, sandbox: Sandbox): Promise<string | null> {
  const text = (await contentOf(path, REF_BYTES_MAX, sandbox))?.toString("latin1").trim() ?? "";
  return SHA.test(text) ? text : null;
}

/** Reads a commit that is in a separate file, as new ones are. */
async function readCommit(sha: string, sandbox: Sandbox): Promise<Commit | null> {
  const path = `${GIT}/objects/${sha.slice(0, 2)}/${sha.slice(2)}`;
  const info = await ignore(sandbox.stat(path, { follow: false }), "it may be in a pack");
  if (info?.kind !== "file") return null;
  const packed = await contentOf(path, OBJECT_BYTES_MAX, sandbox);
  const text = packed === null ? null : inflateObject(packed);
  const end = text?.indexOf("\n\n") ?? -1;
  if (text === null || !text.startsWith("commit ") || end < 0) return null;
  const parents = [...text.slice(0, end).matchAll(/^parent ([0-9a-f]{40,64})$/gm)].map(([, parent = ""]) => parent);
  const subject = text.slice(end + 2).split("\n", 1)[0] ?? "";
  return { subject: subject.slice(0, COMMIT_SUBJECT_CHARACTERS_MAX), parents, writtenMs: info.modifiedMs };
}

/** Inflates the beginning of an object. Null for something else, or something that would be very large. */
function inflateObject(packed: Buffer): string | null {
  const object = ignoring("it is not an object, or a very large one", () =>
    inflateSync(packed, { maxOutputLength: INFLATED_BYTES_MAX, finishFlush: constants.Z_SYNC_FLUSH }),
  );
  return object?.toString("utf8") ?? null;
}

async function contentOf(path: string, bytesMax: number, sandbox: Sandbox): Promise<Buffer | null> {
  const reading = (async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of await sandbox.readFile(path, { length: bytesMax })) chunks.push(chunk);
    return Buffer.concat(chunks);
  })();
  return (await ignore(reading, "it may be missing, or change at this moment")) ?? null;
}
