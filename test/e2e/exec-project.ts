import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Finished, useCaisson } from "./caisson-process.ts";

/** Creates a folder with one file, for tests that start commands in it. */
export async function makeProject(base: string): Promise<string> {
  const project = join(base, "project");
  await mkdir(project, { recursive: true });
  await writeFile(join(project, "data.txt"), "from outside\n");
  return project;
}

/** Returns a function that runs `caisson exec` in the project folder, which may be set later. */
export function execIn(run: ReturnType<typeof useCaisson>["run"], project: () => string): (...argv: string[]) => Promise<Finished> {
  return (...argv) => run(["exec", ...argv], { cwd: project() });
}
