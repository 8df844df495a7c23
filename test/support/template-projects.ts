import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import type { BuildEvent } from "../../src/contract/template/template-verbs.ts";
import type { useCaisson } from "../e2e/caisson-process.ts";

type Caisson = ReturnType<typeof useCaisson>;
export type Built = { code: number | null; stderr: string; events: BuildEvent[]; steps: string[]; output: string };

interface Failure {
  error: { message: string; hint?: string };
}

/** Builds projects of one test file with the command line. */
export function useTemplateProjects({ run, base }: Pick<Caisson, "run" | "base">) {
  let projects = 0;
  return {
    /** Writes a folder with these files and returns its path. */
    project(files: Readonly<Record<string, string | Buffer>>): string {
      projects += 1;
      const folder = join(base(), `project-${projects}`);
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), content);
      }
      return folder;
    },
    /** Returns the events, and the steps as `STATE TEXT` without the ends. */
    async build(path: string, ...more: string[]): Promise<Built> {
      const { code, stderr: problems, text } = await run(["template", "build", path, "--json", ...more]);
      const printed = text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as BuildEvent | Failure] : []));
      const events = printed.flatMap((event) => ("error" in event ? [] : [event]));
      const errors = printed.flatMap((event) => ("error" in event ? [`${event.error.message}\nhint: ${event.error.hint}`] : []));
      const stderr = problems + errors.join("\n");
      const steps = events.flatMap((event) =>
        "step" in event && event.step.state !== "ended" ? [`${event.step.state} ${event.step.text}`] : [],
      );
      return { code, stderr, events, steps, output: events.map((event) => ("output" in event ? event.output : "")).join("") };
    },
    /** Runs a shell script in a new sandbox from a template, and returns its output. */
    async inside(template: string, script: string, ...more: string[]): Promise<string> {
      const { code, text, stderr } = await run(["exec", "--template", template, "--no-workspace", ...more, "--", "sh", "-c", script]);
      expect(code, stderr).toBe(0);
      return text;
    },
  };
}
