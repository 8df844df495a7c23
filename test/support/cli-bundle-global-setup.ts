import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

/** Gives the run a folder for the bundle that tests make on demand (`cliBundle`), and removes it at the end. */
export default function setup(project: TestProject): () => Promise<void> {
  const folder = join(import.meta.dirname, "..", "..", "build", `cli-test-${process.pid}`);
  project.provide("bundleFolder", folder);
  return async () => {
    for (const each of [folder, `${folder}-draft`]) await rm(each, { recursive: true, force: true });
  };
}
