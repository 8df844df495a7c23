import { mkdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Where programs inside find what the host put there for them: certificates to trust and the like. They can read it and
 * not change it.
 */
export const insideTarget = "/run/caisson";

/** The folder of the host's that is seen at `insideTarget`. What is written to it later is seen at once. */
export function insideFolderOf(sandboxFolder: string): string {
  return join(sandboxFolder, "inside");
}

/** To be called before the sandbox is started. Readable for all: users inside are others than the host's. */
export function makeInsideFolder(sandboxFolder: string): string {
  const folder = insideFolderOf(sandboxFolder);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return folder;
}
