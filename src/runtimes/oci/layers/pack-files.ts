import { existsSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxId } from "../../../contract/ids.ts";
import { whileFrozen } from "../freeze.ts";
import { runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

/** Allows for everything that a state folder contains, on a slow disk. */
const PACK_TIMEOUT_MS = 6 * 3_600_000;
/** Preserves owners by number, and the marks by which overlays recognize deleted files. */
const faithfully = ["--numeric-owner", "--xattrs", "--xattrs-include=*", "--sparse", "--format=pax"];

/** GNU tar's exit status if a file changed or disappeared while it was read. The archive is complete all the same. */
const CHANGED_STATUS = 1;

/** See `Runtime.packFiles`. */
export async function packFiles(
  oci: OciContext,
  { folder, names, file, still }: { folder: string; names: readonly string[]; file: string; still: readonly SandboxId[] },
): Promise<{ hasChanged: boolean }> {
  const there = names.filter((name) => existsSync(join(folder, name)));
  if (there.length === 0) return { hasChanged: false };
  const pack = async () => {
    // A file that is replaced in the meantime is packed whole, old or new. Sockets and missing files are left out.
    const status = await tar(oci, [
      ...["--create", "--file", file, "--warning=none", "--ignore-failed-read", ...faithfully],
      ...["--directory", folder, "--", ...there],
    ]);
    return { hasChanged: status === CHANGED_STATUS };
  };
  const frozen = still.reduceRight<typeof pack>((work, id) => () => whileFrozen(oci, id, work), pack);
  return frozen();
}

/** See `Runtime.unpackFiles`. */
export async function unpackFiles(oci: OciContext, { file, folder }: { file: string; folder: string }): Promise<void> {
  const args = ["--extract", "--file", file, "--preserve-permissions", "--same-owner", ...faithfully, "--directory", folder];
  if ((await tar(oci, args)) !== 0) throw packError(new Error("files differ from those in the archive"));
}

/** Returns tar's exit status if it is 0 or `CHANGED_STATUS`. Throws for any other. */
async function tar(oci: OciContext, args: readonly string[]): Promise<number> {
  try {
    await runInside(oci, ["tar", ...args], { timeoutMs: PACK_TIMEOUT_MS });
    return 0;
  } catch (cause) {
    if (cause instanceof CaissonError && cause.details?.status === CHANGED_STATUS) return CHANGED_STATUS;
    throw packError(cause as Error);
  }
}

function packError(cause: Error): CaissonError {
  return new CaissonError("unavailable", `could not pack or unpack the files of the state folder: ${cause.message}`, {
    cause,
    hint: "Make sure that GNU tar is installed and the disk has room.",
  });
}
