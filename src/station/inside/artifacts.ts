import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { ArtifactName } from "../../contract/inside-event.ts";
import { type ArtifactView, insideLimits, type StoredArtifact } from "../../contract/inside-verbs.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { createDiskShares, type DiskShares, type DiskWrite } from "../../sandbox/disk-shares.ts";

/** Files that programs inside left for a run, or for the owner of a sandbox; a folder each in the state folder. */
export interface Artifacts {
  put(of: string, name: string, data: AsyncIterable<Uint8Array>): Promise<StoredArtifact>;
  list(of: string): Promise<ArtifactView[]>;
  /** Throws `not_found`. */
  read(of: string, name: string): Promise<AsyncIterable<Uint8Array>>;
  /** Whose there are. */
  owners(): Promise<string[]>;
  remove(of: string): Promise<void>;
}

const DRAFT_PREFIX = ".new-";

export function createArtifacts({ stateDir, disk = createDiskShares({ stateDir }) }: { stateDir: string; disk?: DiskShares }): Artifacts {
  const root = join(stateDir, "artifacts");
  const folderOf = (of: string) => join(root, of);
  const list = async (of: string): Promise<ArtifactView[]> => {
    const names = (await readdir(folderOf(of)).catch(() => [])).filter((name) => ArtifactName.safeParse(name).success).sort();
    const found = await Promise.all(names.map((name) => viewOf(join(folderOf(of), name), name)));
    return found.filter((view) => view !== null);
  };
  return {
    list,
    async put(of, given, data) {
      const name = parseRequest(ArtifactName, given, "an artifact's name");
      const others = (await list(of)).filter((artifact) => artifact.name !== name);
      if (others.length >= insideLimits.artifactsMax) throw full(`there are ${others.length} artifacts already`);
      const left = insideLimits.artifactsBytesMax - others.reduce((sum, { bytes }) => sum + bytes, 0);
      await mkdir(folderOf(of), { recursive: true, mode: 0o700 });
      const draft = join(folderOf(of), `${DRAFT_PREFIX}${randomLetters(8)}`);
      try {
        const bytesMax = Math.min(left, insideLimits.artifactBytesMax);
        const stored = await disk.write({ what: "the artifact" }, ({ add }) => writeAll(draft, data, { bytesMax, add }));
        await rename(draft, join(folderOf(of), name));
        return { name, ...stored };
      } catch (error) {
        await rm(draft, { force: true });
        if (isErrno(error, "ENOSPC")) throw new CaissonError("no_space", "the disk is full", { cause: error });
        throw error;
      }
    },
    async read(of, given) {
      const name = parseRequest(ArtifactName, given, "an artifact's name");
      const path = join(folderOf(of), name);
      if ((await viewOf(path, name)) === null) {
        throw new CaissonError("not_found", `${of} has no artifact ${name}`, { hint: `\`caisson artifacts ${of}\` lists what it has.` });
      }
      return createReadStream(path);
    },
    owners: async () => await readdir(root).catch(() => []),
    remove: (of) => rm(folderOf(of), { recursive: true, force: true }),
  };
}

async function writeAll(
  path: string,
  data: AsyncIterable<Uint8Array>,
  { bytesMax, add }: { bytesMax: number; add: DiskWrite["add"] },
): Promise<{ bytes: number; sha256: string }> {
  await using file = await open(path, "wx", 0o600);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of data) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new CaissonError("too_large", `the artifact is larger than the ${bytesMax} bytes that are left for it`);
    await add(chunk.length);
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  await file.sync();
  return { bytes, sha256: hash.digest("hex") };
}

async function viewOf(path: string, name: string): Promise<ArtifactView | null> {
  try {
    const { size, mtime } = await stat(path);
    return { name, bytes: size, storedAt: mtime.toISOString() };
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

function full(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Put one of the same name, which takes its place." });
}
