import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Finished, useCaisson } from "./caisson-process.ts";

/** A folder with a file in it, to start commands in. */
export async function makeProject(base: string): Promise<string> {
  const project = join(base, "project");
  await mkdir(project, { recursive: true });
  await writeFile(join(project, "data.txt"), "from outside\n");
  return project;
}

/** `caisson exec` with these arguments, in the folder that is the project by then. */
export function execIn(run: ReturnType<typeof useCaisson>["run"], project: () => string): (...argv: string[]) => Promise<Finished> {
  return (...argv) => run(["exec", ...argv], { cwd: project() });
}
