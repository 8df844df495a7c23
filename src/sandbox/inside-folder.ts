import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
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

/**
 * To be called before the sandbox is started. Readable for all, whatever the umask: users inside are others than the
 * host's.
 */
export function makeInsideFolder(sandboxFolder: string, files: Readonly<Record<string, string>> = {}): string {
  const folder = insideFolderOf(sandboxFolder);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), content);
    chmodSync(join(folder, name), 0o644);
  }
  return folder;
}
