import { CaissonError } from "../../contract/error.ts";
import type { OwnRepository } from "./make-commit.ts";

/** What goes over a wire at once, in either direction. */
export const PACK_BYTES_MAX = 512 * 1024 * 1024;

type Own = Pick<OwnRepository, "git">;

/** Of these commits, those that our repository has. */
export async function knownOf({ git }: Own, hashes: readonly string[]): Promise<string[]> {
  const asked = [...new Set(hashes)];
  if (asked.length === 0) return [];
  const output = await git(["cat-file", "--batch-check=%(objectname) %(objecttype)"], { input: `${asked.join("\n")}\n` });
  const commits = new Set(
    output
      .toString("utf8")
      .split("\n")
      .filter((line) => line.endsWith(" commit"))
      .map((line) => line.split(" ")[0]),
  );
  return asked.filter((hash) => commits.has(hash));
}

/** What leads to the one and not to the others, which whoever gets the pack has. Throws `too_large`. */
export async function packOf({ git }: Own, { wants, haves }: { wants: readonly string[]; haves: readonly string[] }): Promise<Buffer> {
  const input = `${[...wants, ...haves.map((hash) => `^${hash}`)].join("\n")}\n`;
  return await git(["pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q"], {
    input,
    outputBytesMax: PACK_BYTES_MAX,
  });
}

/** Takes objects of a remote into our repository. Throws `protocol` for a pack that is damaged, or lacks something. */
export async function takePack({ git }: Own, pack: Buffer): Promise<void> {
  try {
    await git(["index-pack", "--stdin", "--fix-thin"], { input: pack });
  } catch (error) {
    throw new CaissonError("protocol", "the remote sent a pack that git does not take", { cause: error });
  }
}

export async function isAncestor({ git }: Own, older: string, newer: string): Promise<boolean> {
  try {
    await git(["merge-base", "--is-ancestor", older, newer]);
    return true;
  } catch (error) {
    if (error instanceof CaissonError && error.details?.exitCode === 1) return false;
    throw error;
  }
}

/** The tree of both together; or, where they conflict, the files that both changed. */
export async function mergedTree({ git }: Own, ours: string, theirs: string): Promise<{ tree: string } | { conflicts: string[] }> {
  const args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs];
  try {
    const [tree = ""] = (await git(args)).toString("utf8").split("\0");
    return { tree };
  } catch (error) {
    if (!(error instanceof CaissonError) || error.details?.exitCode !== 1) throw error;
    return { conflicts: await changedByBoth({ git }, ours, theirs) };
  }
}

async function changedByBoth({ git }: Own, ours: string, theirs: string): Promise<string[]> {
  const base = (await git(["merge-base", ours, theirs])).toString("utf8").trim();
  const changed = async (commit: string) =>
    (await git(["diff-tree", "-r", "--name-only", "--no-renames", "-z", base, commit])).toString("utf8").split("\0").filter(Boolean);
  const theirFiles = new Set(await changed(theirs));
  return (await changed(ours)).filter((path) => theirFiles.has(path));
}
