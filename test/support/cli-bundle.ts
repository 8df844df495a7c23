import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    bundleFolder: string;
  }
}

const root = join(import.meta.dirname, "..", "..");

/**
 * Bundles the command line from the current sources, once per run, when a test first needs it. Returns the program and
 * a folder for its compile cache.
 */
export async function cliBundle(node: string): Promise<{ program: string; compileCache: string }> {
  const folder = inject("bundleFolder");
  if (!existsSync(folder)) {
    const draft = `${folder}-draft-${process.pid}`;
    await promisify(execFile)(node, [join(root, "scripts", "bundle.ts"), draft]);
    // Two files of the waiting lane may each build one. All tests use the first.
    await rename(draft, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
      return rm(draft, { recursive: true });
    });
  }
  return { program: join(folder, "caisson.mjs"), compileCache: join(folder, "compile-cache") };
}
