import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { TestProject } from "vitest/node";

/** Creates a folder for the bundle that tests build on demand (`cliBundle`), and removes it at the end of the run. */
export default function setup(project: TestProject): () => Promise<void> {
  const folder = join(import.meta.dirname, "..", "..", "build", `cli-test-${process.pid}`);
  project.provide("bundleFolder", folder);
  return async () => {
    // A file that ended early may have left a draft.
    const parts = (await readdir(dirname(folder))).filter((name) => name === basename(folder) || name.startsWith(`${basename(folder)}-`));
    for (const name of parts) await rm(join(dirname(folder), name), { recursive: true, force: true });
  };
}
