import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SnapshotId } from "../../../contract/ids.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { isTransparent } from "../launch/transparent.ts";
import { readSnapshot, snapshotDir } from "../layers/snapshot-store.ts";
import type { OciContext } from "../oci-context.ts";
import { requireCriu } from "./criu-tool.ts";
import type { MemoryImage } from "./memory-image-record.ts";

/** The folder in a snapshot's that holds its processes. */
export const MEMORY_NAME = "memory";

export const memoryDir = (oci: OciContext, id: SnapshotId) => join(snapshotDir(oci, id), MEMORY_NAME);

/**
 * What the processes and the guest already depend on. The rest of a config concerns only what the host does, or what is
 * started later.
 */
const fixed = ["allowRoot", "workspace", "mounts", "readOnlyPaths", "deniedPaths", "tmpBytes", "shmBytes"] as const;

/**
 * Returns the processes of the config's snapshot, or undefined. Throws `conflict` if the config gives them other rights
 * or files than they had: the running processes would keep the old ones.
 */
export async function memoryOf(oci: OciContext, config: SandboxConfig): Promise<MemoryImage | undefined> {
  if (config.template.kind !== "snapshot") return undefined;
  const { id, socket, spec: before } = { ...(await readSnapshot(oci, config.template.id)) };
  if (socket === null) return undefined;
  requireCriu(oci);
  const other = fixed.find((name) => !isDeepStrictEqual(config[name], before[name]));
  const isOtherNetwork = isTransparent(config.network) !== isTransparent(before.network);
  if (other !== undefined || isOtherNetwork)
    throw new CaissonError("conflict", `snapshot ${id} has processes, which were started with another ${other ?? "kind of network"}`, {
      hint: "Use the options of the sandbox that the snapshot was taken of, or take a snapshot without --memory.",
    });
  return { dir: memoryDir(oci, id), socket };
}
