import { CaissonError } from "../../contract/error/error.ts";
import type { OwnRepository } from "./make-commit.ts";

/** The most bytes that one push or fetch may transfer. */
export const PACK_BYTES_MAX = 512 * 1024 * 1024;

type Own = Pick<OwnRepository, "git">;

/** Returns which of these commits our repository has. */
export async function knownOf({ git }: Own, hashes: readonly string[]): Promise<string[]> {
  const uniqueHashes = [...new Set(hashes)];
  if (uniqueHashes.length === 0) return [];
  const output = await git(["cat-file", "--batch-check=%(objectname) %(objecttype)"], { input: `${uniqueHashes.join("\n")}\n` });
  const commits = new Set(
    output
      .toString("utf8")
      .split("\n")
      .filter((line) => line.endsWith(" commit"))
      .map((line) => line.split(" ")[0]),
  );
  return uniqueHashes.filter((hash) => commits.has(hash));
}

/** Packs the history of the wanted commits, without that of the commits that the receiver has. Throws `too_large`. */
export async function packOf({ git }: Own, { wants, haves }: { wants: readonly string[]; haves: readonly string[] }): Promise<Buffer> {
  const input = `${[...wants, ...haves.map((hash) => `^${hash}`)].join("\n")}\n`;
  return await git(["pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q"], {
    input,
    outputBytesMax: PACK_BYTES_MAX,
  });
}

/** Adds a remote's objects to our repository. Throws `protocol` for a pack that is damaged or incomplete. */
export async function takePack({ git }: Own, pack: Buffer): Promise<void> {
  try {
    await git(["index-pack", "--stdin", "--fix-thin"], { input: pack });
  } catch (error) {
    throw new CaissonError("protocol", "the remote sent a pack that git rejects", { cause: error });
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

/** Returns the tree of both commits merged, or the files that both changed if they conflict. */
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
  const listChanged = async (commit: string) =>
    (await git(["diff-tree", "-r", "--name-only", "--no-renames", "-z", base, commit])).toString("utf8").split("\0").filter(Boolean);
  const theirFiles = new Set(await listChanged(theirs));
  return (await listChanged(ours)).filter((path) => theirFiles.has(path));
}
