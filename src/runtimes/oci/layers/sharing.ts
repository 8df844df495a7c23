import { constants } from "node:fs";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ignore } from "../../../lib/failures.ts";
import type { Finding } from "../../../sandbox/runtime.ts";
import type { OciContext } from "../oci-context.ts";
import { hasLiveTrees } from "./live-tree.ts";

/**
 * Reports how points of sessions are stored in a state folder: by subvolumes, or whether its file system can share
 * blocks (reflinks).
 */
export async function sharingFindings(oci: Pick<OciContext, "context" | "identity">): Promise<Finding[]> {
  const { stateDir } = oci.context;
  if (await hasLiveTrees(oci)) {
    return [{ level: "ok", text: "points of sessions by btrfs: a point is a snapshot, whatever the number of files" }];
  }
  const folder = await mkdtemp(join(stateDir, ".sharing-"));
  try {
    await writeFile(join(folder, "file"), "x".repeat(4096));
    const cloning = copyFile(join(folder, "file"), join(folder, "copy"), constants.COPYFILE_FICLONE_FORCE);
    const shares =
      (await ignore(
        cloning.then(() => true),
        "most file systems cannot",
      )) ?? false;
    const how = shares
      ? "reflink: a point stores what changed, in blocks shared with the files"
      : "delta: a point stores what changed since the last one; with reflinks (btrfs, xfs) it would take no further room";
    return [{ level: "ok", text: `points of sessions by ${how}` }];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
