import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The read-only folder inside in which the host places files for programs, such as certificates to trust. */
export const insideTarget = "/run/caisson";

/** Returns the host folder that is mounted at `insideTarget`. Programs inside see later writes immediately. */
export function insideFolderOf(sandboxFolder: string): string {
  return join(sandboxFolder, "inside");
}

/**
 * Creates the folder; call it before the sandbox starts. Everything is world-readable regardless of the umask, because
 * the users inside are not the host's.
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
