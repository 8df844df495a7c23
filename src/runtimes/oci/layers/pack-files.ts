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

/** See `Runtime.packFiles`. */
export async function packFiles(
  oci: OciContext,
  { folder, names, file, still }: { folder: string; names: readonly string[]; file: string; still: readonly SandboxId[] },
): Promise<void> {
  const there = names.filter((name) => existsSync(join(folder, name)));
  const pack = () =>
    // A file that is replaced meanwhile is there whole, the old one or the new; sockets and what is gone are left out.
    tar(oci, ["--create", "--file", file, "--warning=none", "--ignore-failed-read", ...faithfully, "--directory", folder, "--", ...there]);
  const frozen = still.reduceRight<() => Promise<void>>((work, id) => () => whileFrozen(oci, id, work), pack);
  await frozen();
}

/** See `Runtime.unpackFiles`. */
export async function unpackFiles(oci: OciContext, { file, folder }: { file: string; folder: string }): Promise<void> {
  await tar(oci, ["--extract", "--file", file, "--preserve-permissions", "--same-owner", ...faithfully, "--directory", folder]);
}

async function tar(oci: OciContext, args: readonly string[]): Promise<void> {
  try {
    await runInside(oci, ["tar", ...args], { timeoutMs: PACK_TIMEOUT_MS });
  } catch (cause) {
    throw new CaissonError("unavailable", `the files of the state folder could not be packed or unpacked: ${(cause as Error).message}`, {
      cause,
      hint: "GNU tar has to be installed, and the disk must have room.",
    });
  }
}
