import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxId } from "../../../contract/ids.ts";
import { ifErrnoSync } from "../../../lib/failures.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import type { OciDetails } from "../details.ts";
import { identityOf } from "../identity/id-ranges.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { criuTool, requireCriu } from "./criu-tool.ts";
import { withNamespacesOf } from "./inventory.ts";
import { MemoryImage } from "./memory-image-record.ts";

/** The guest gives up waiting after ten minutes; see guest/src/reaper.c. */
const DUMP_TIMEOUT_MS = 300_000;
/** The guest's pid inside: process 1 is the reaper. */
const GUEST_IDS = "ids-2.img";
const IMAGES = "images";

/**
 * Stores the processes of a sandbox in a new folder. They stay stopped afterwards, also if this throws: call
 * `continueProcesses` in any case. Throws `unsupported` with the name of a process that cannot be stored.
 */
export async function dumpMemory(oci: OciContext, details: OciDetails, dir: string): Promise<MemoryImage> {
  const criu = requireCriu(oci);
  if (!details.hasReaper || details.guest === null) {
    throw new CaissonError("unsupported", "the processes of this sandbox cannot be stored: it was started when CRIU was not available", {
      hint: "Create the sandbox again, or take a snapshot of its files alone.",
    });
  }
  const images = join(dir, IMAGES);
  await mkdir(dir, { mode: 0o700 });
  await mkdir(images, { mode: 0o755 });
  const lines = await oci.launch({
    what: "dump",
    plan: [...identityOf(oci, details).plan, ["dump", details.guest.pid, criu, images]],
    timeoutMs: DUMP_TIMEOUT_MS,
  });
  const socket = Number(lines.map((line) => /^socket (\d+)$/.exec(line)?.[1]).find((text) => text !== undefined));
  await removeUnneeded(images);
  await patchInventory(images);
  return MemoryImage.parse({ dir, socket });
}

/** Removes logs and what concerns the old sandbox's namespaces. Throws `unsupported` for what no image restores. */
async function removeUnneeded(images: string): Promise<void> {
  const names = await readdir(images);
  if (names.some((name) => /^ipcns-(?:shm|msg|sem)/.test(name)))
    throw new CaissonError("unsupported", "the processes cannot be stored: one has System V shared memory, semaphores or message queues", {
      hint: "`ipcs` inside shows them. Store the files alone; the sandbox continues.",
    });
  const unneeded = names.filter((name) =>
    /^(?:dump\.log|output|stats-dump|(?:mountpoints|netns|userns|utsns|pidns|ipcns|timens)-.*\.img)$/.test(name),
  );
  for (const name of unneeded) await rm(join(images, name));
}

async function patchInventory(images: string): Promise<void> {
  const path = join(images, "inventory.img");
  try {
    await writeFile(path, withNamespacesOf(await readFile(path), await readFile(join(images, GUEST_IDS))));
  } catch (cause) {
    throw new CaissonError("unsupported", "this version of CRIU writes images of an unknown format", { cause });
  }
}

/** Lets the processes continue after `dumpMemory`. Idempotent. */
export function continueProcesses({ guest }: Pick<OciDetails, "guest">): void {
  if (guest === null || !isRunning(guest)) return;
  const parent = ifErrnoSync(
    () => /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${guest.pid}/status`, "latin1"))?.[1],
    ["ENOENT", "ESRCH"],
    undefined,
  );
  if (parent !== undefined && Number(parent) > 1) ifErrnoSync(() => process.kill(Number(parent), "SIGUSR1"), ["ESRCH"], false);
}

/** Returns the launcher's record that starts a sandbox from an image. */
export async function restoreRecords(oci: OciContext, image: MemoryImage | undefined): Promise<PlanRecord[]> {
  return image === undefined ? [] : [["restore", join(image.dir, IMAGES), await criuTool(oci), image.socket]];
}

/** Returns the bytes of an image on the disk. */
export async function bytesOfImage({ dir }: Pick<MemoryImage, "dir">): Promise<number> {
  const names = await readdir(join(dir, IMAGES));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(dir, IMAGES, name))).blocks * 512));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Throws `conflict` for a sandbox whose processes are on the disk. */
export function refuseOnDisk(id: SandboxId, { onDisk }: Pick<OciDetails, "onDisk">): void {
  if (onDisk !== null)
    throw new CaissonError("conflict", `sandbox ${id} is paused on the disk`, { hint: `Run \`caisson sandbox resume ${id}\` first.` });
}
