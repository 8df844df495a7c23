import { join } from "node:path";
import { type Change, gitMode } from "../change.ts";
import type { PrivateRepository } from "./private-repository.ts";

/** Our own repository, in which git may work. */
export type OwnRepository = Pick<PrivateRepository, "git" | "folder" | "put">;

export interface CommitFacts {
  /** Null for a first commit. */
  base: string | null;
  /** The path of the changed folder in the repository. */
  prefix: string;
  message: string;
  author: { name: string; email: string };
  /** The commit's time. With a fixed time the same changes give the same commit. Defaults to now. */
  at?: string;
}

/** Commits the changes on top of the base, as objects in our repository. Throws `internal` with git's message. */
export async function makeCommit(changes: readonly Change[], { own, ...facts }: CommitFacts & { own: OwnRepository }): Promise<string> {
  const { base, prefix, message, author, at } = facts;
  const env = { GIT_INDEX_FILE: join(own.folder, "index") };
  if (base !== null) await own.git(["read-tree", base], { env });
  await own.git(["update-index", "-z", "--index-info"], { env, input: await indexInfo(changes, { own, prefix }) });
  // A partial clone need not have the content of every file.
  const tree = await words(own.git(["write-tree", "--missing-ok"], { env }));
  return await commitTree({ own, tree, parents: base === null ? [] : [base], message, author, ...(at !== undefined && { at }) });
}

/** Commits an existing tree. */
export async function commitTree(
  facts: Omit<CommitFacts, "base" | "prefix"> & { own: OwnRepository; tree: string; parents: readonly string[] },
): Promise<string> {
  const { own, tree, parents, message, author, at } = facts;
  const env = { ...identity(author), ...(at !== undefined && { GIT_AUTHOR_DATE: at, GIT_COMMITTER_DATE: at }) };
  return await words(own.git(["commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]), "-F", "-"], { env, input: message }));
}

const words = async (output: Promise<Buffer>) => (await output).toString("utf8").trim();

const identity = ({ name, email }: CommitFacts["author"]) => ({
  GIT_AUTHOR_NAME: name,
  GIT_AUTHOR_EMAIL: email,
  GIT_COMMITTER_NAME: name,
  GIT_COMMITTER_EMAIL: email,
});

/** Builds the input for git's index. Removals come first, so that a file may replace a folder. */
async function indexInfo(changes: readonly Change[], { own, prefix }: { own: OwnRepository; prefix: string }): Promise<string> {
  const at = (path: string) => join(prefix, path);
  const removedPaths = changes.flatMap(({ path, from, after }) => (from !== null ? [from] : after === null ? [path] : []));
  const staying = changes.flatMap((change) => (change.after === null ? [] : [{ path: change.path, side: change.after }]));
  const files: string[] = [];
  for (const [index, { side }] of staying.entries()) files.push(await own.put(`content-${index}`, side.content));
  const blobs =
    files.length === 0
      ? []
      : (await words(own.git(["hash-object", "-w", "--no-filters", "--stdin-paths"], { input: `${files.join("\n")}\n` }))).split("\n");
  const none = "0".repeat(blobs[0]?.length ?? 40);
  return [
    ...removedPaths.map((path) => `0 ${none}\t${at(path)}\0`),
    ...staying.map(({ path, side }, index) => `${gitMode(side)} ${blobs[index]}\t${at(path)}\0`),
  ].join("");
}
