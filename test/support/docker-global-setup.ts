import type { TestProject } from "vitest/node";
import { newEngineFolder, stopSharedEngines, sweepEngines } from "./docker-engine-process.ts";

/**
 * Creates a folder for the engines that tests start on demand (`useDockerEngine`), and stops them at the end of the
 * run. Costs nothing if no test needs one.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepEngines();
  const folder = newEngineFolder();
  project.provide("enginesFolder", folder);
  return () => stopSharedEngines(folder);
}
