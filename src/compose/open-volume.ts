import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * Mounts the volume of a state folder, if it has one, or creates one of the configured size. Without a volume, it costs
 * one look at the disk. See `openVolume`.
 */
export async function openVolumeOf(options: {
  stateDir: string;
  guestPath: string;
  path: string;
  bytes?: number | undefined;
}): Promise<void> {
  if (options.bytes === undefined && !existsSync(join(options.stateDir, "volume.btrfs"))) return;
  const { openVolume } = await import("../runtimes/oci/layers/volume.ts");
  await openVolume(options);
}
