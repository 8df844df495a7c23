import { existsSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
import type { SandboxId } from "../../../contract/ids.ts";
import { whileFrozen } from "../freeze.ts";
import { runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

/** Of everything that a state folder holds, on a slow disk. */
const PACK_TIMEOUT_MS = 6 * 3_600_000;
/** Owners by number, and the marks by which overlays know what was deleted. */
const faithfully = ["--numeric-owner", "--xattrs", "--xattrs-include=*", "--sparse", "--format=pax"];

/** GNU tar's, when something was changed or removed while it was read: the archive is whole all the same. */
const CHANGED_STATUS = 1;

/** See `Runtime.packFiles`. */
export async function packFiles(
  oci: OciContext,
  { folder, names, file, still }: { folder: string; names: readonly string[]; file: string; still: readonly SandboxId[] },
): Promise<{ hasChanged: boolean }> {
  const there = names.filter((name) => existsSync(join(folder, name)));
  if (there.length === 0) return { hasChanged: false };
  const pack = async () => {
    // A file that is replaced meanwhile is there whole, the old one or the new; sockets and what is gone are left out.
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
  if ((await tar(oci, args)) !== 0) throw failed(new Error("files differ from those in the archive"));
}

/** Its status, 0 or `CHANGED_STATUS`; any other is thrown. */
async function tar(oci: OciContext, args: readonly string[]): Promise<number> {
  try {
    await runInside(oci, ["tar", ...args], { timeoutMs: PACK_TIMEOUT_MS });
    return 0;
  } catch (cause) {
    if (cause instanceof CaissonError && cause.details?.status === CHANGED_STATUS) return CHANGED_STATUS;
    throw failed(cause as Error);
  }
}

function failed(cause: Error): CaissonError {
  return new CaissonError("unavailable", `the files of the state folder could not be packed or unpacked: ${cause.message}`, {
    cause,
    hint: "GNU tar has to be installed, and the disk must have room.",
  });
}
