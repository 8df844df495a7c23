import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ArtifactName } from "../../contract/inside/inside-event.ts";
import { type ArtifactView, insideLimits, type StoredArtifact } from "../../contract/inside/inside-verbs.ts";
import { ABSENT, ifErrno, isErrno } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { createDiskShares, type DiskShares, type DiskWrite } from "../../sandbox/disk-shares.ts";

/**
 * Files that programs in sandboxes stored for a subject: a run, or a sandbox outside a run. Each subject has a folder.
 */
export interface Artifacts {
  put(subject: string, name: string, data: AsyncIterable<Uint8Array>): Promise<StoredArtifact>;
  list(subject: string): Promise<ArtifactView[]>;
  /** Throws `not_found`. */
  read(subject: string, name: string): Promise<AsyncIterable<Uint8Array>>;
  /** The subjects that have artifacts. */
  subjects(): Promise<string[]>;
  remove(subject: string): Promise<void>;
}

const DRAFT_PREFIX = ".new-";

export function createArtifacts({ stateDir, disk = createDiskShares({ stateDir }) }: { stateDir: string; disk?: DiskShares }): Artifacts {
  const root = join(stateDir, "artifacts");
  const folderOf = (subject: string) => join(root, subject);
  const list = async (subject: string): Promise<ArtifactView[]> => {
    const names = (await ifErrno(readdir(folderOf(subject)), ABSENT, [])).filter((name) => ArtifactName.safeParse(name).success).sort();
    const found = await Promise.all(names.map((name) => viewOf(join(folderOf(subject), name), name)));
    return found.filter((view) => view !== null);
  };
  return {
    list,
    async put(subject, requestedName, data) {
      const name = parseRequest(ArtifactName, requestedName, "an artifact's name");
      const others = (await list(subject)).filter((artifact) => artifact.name !== name);
      if (others.length >= insideLimits.artifactsMax) throw full(`there are already ${others.length} artifacts`);
      const left = insideLimits.artifactsBytesMax - others.reduce((sum, { bytes }) => sum + bytes, 0);
      await mkdir(folderOf(subject), { recursive: true, mode: 0o700 });
      const draft = join(folderOf(subject), `${DRAFT_PREFIX}${randomLetters(8)}`);
      try {
        const bytesMax = Math.min(left, insideLimits.artifactBytesMax);
        const stored = await disk.write({ what: "the artifact" }, ({ add }) => writeAll(draft, data, { bytesMax, add }));
        await rename(draft, join(folderOf(subject), name));
        return { name, ...stored };
      } catch (error) {
        await rm(draft, { force: true });
        if (isErrno(error, "ENOSPC")) throw new CaissonError("no_space", "the disk is full", { cause: error });
        throw error;
      }
    },
    async read(subject, requestedName) {
      const name = parseRequest(ArtifactName, requestedName, "an artifact's name");
      const path = join(folderOf(subject), name);
      if ((await viewOf(path, name)) === null) {
        throw new CaissonError("not_found", `${subject} has no artifact ${name}`, {
          hint: `\`caisson artifacts ${subject}\` lists its artifacts.`,
        });
      }
      return createReadStream(path);
    },
    subjects: async () => await ifErrno(readdir(root), ABSENT, []),
    remove: (subject) => rm(folderOf(subject), { recursive: true, force: true }),
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
    if (bytes > bytesMax) throw new CaissonError("too_large", `the artifact exceeds the ${bytesMax} bytes available for it`);
    await add(chunk.length);
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  await file.sync();
  return { bytes, sha256: hash.digest("hex") };
}

async function viewOf(path: string, name: string): Promise<ArtifactView | null> {
  const found = await ifErrno(stat(path), ["ENOENT"], null);
  return found === null ? null : { name, bytes: found.size, storedAt: found.mtime.toISOString() };
}

function full(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Use the name of an existing artifact to replace it." });
}
