import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    bundleFolder: string;
  }
}

const root = join(import.meta.dirname, "..", "..");

/** The command line as one bundle of the sources as they are, made by the first test file of a run that asks for it. Gives the program and a place for its compiled form. */
export async function cliBundle(node: string): Promise<{ program: string; compileCache: string }> {
  const folder = inject("bundleFolder");
  if (!existsSync(folder)) {
    const draft = `${folder}-draft`;
    await promisify(execFile)(node, [join(root, "scripts", "bundle.ts"), draft]);
    // Files go one after another, so nobody else makes one meanwhile.
    await rename(draft, folder);
  }
  return { program: join(folder, "caisson.mjs"), compileCache: join(folder, "compile-cache") };
}
