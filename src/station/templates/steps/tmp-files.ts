import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { CaissonError } from "../../../contract/error/error.ts";
import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";

/**
 * A sandbox's /tmp is in memory, so a snapshot does not contain it. Dockerfiles use it between instructions, so a build
 * carries it from one step to the next, as an archive that the host never opens.
 */
const TMP = "/tmp";
const TMP_BYTES_MAX = 2 * 1024 ** 3;

/** Writes the archive of /tmp to a file. Returns false if /tmp is empty, and writes nothing then. */
export async function storeTmp(
  sandbox: OwnedSandbox,
  file: string,
  { stateDir, owner }: { stateDir: string; owner: string },
): Promise<boolean> {
  const { entries } = await sandbox.list(TMP, { user: "root", depth: 1, entriesMax: 1 });
  if (entries.length === 0) return false;
  const handle = await open(file, "wx", 0o600);
  try {
    const archive = await sandbox.tarOut(TMP, { user: "root", bytesMax: TMP_BYTES_MAX });
    await createDiskShares({ stateDir }).write({ what: "the /tmp of a step", owner }, async ({ add }) => {
      for await (const piece of archive) {
        await add(piece.length);
        await handle.writeFile(piece);
      }
    });
    await handle.sync();
    return true;
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

export async function restoreTmp(sandbox: OwnedSandbox, file: string): Promise<void> {
  const stream = createReadStream(file);
  try {
    await sandbox.tarIn(TMP, stream, { user: "root", keepOwner: true });
  } catch (cause) {
    if (cause instanceof CaissonError) throw cause;
    throw new CaissonError("internal", "the stored /tmp of a step cannot be read", { hint: "Build again with --no-cache.", cause });
  } finally {
    stream.destroy();
  }
}
