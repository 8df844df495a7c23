import type { TestProject } from "vitest/node";
import { newEngineFolder, stopSharedEngines, sweepEngines } from "./docker-engine-process.ts";

/** Gives the run a folder for engines that tests start on demand (`useDockerEngine`), and stops those at the end. Costs nothing when no test asks. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepEngines();
  const folder = newEngineFolder();
  project.provide("enginesFolder", folder);
  return () => stopSharedEngines(folder);
}
