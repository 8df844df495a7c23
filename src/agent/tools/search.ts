import { matchesGlob } from "node:path/posix";
import { z } from "zod";
import { run } from "../../sandbox/run.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Tool } from "../tool.ts";
import { GLOB_ENTRIES_MAX, GLOB_RESULTS_MAX, GREP_FILE_MEGABYTES_MAX, GREP_MATCHES_MAX, LINE_CHARACTERS_MAX } from "./limits.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

/** Never what an agent looks for, and often most of the files. */
const SKIPPED = new Set([".git", "node_modules"]);
const GREP_TIMEOUT_MS = 30_000;
const GREP_OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

const GlobArguments = z.strictObject({
  pattern: z.string().min(1).max(1000).describe("Such as src/**/*.ts; matched against paths relative to the folder."),
  folder: z.string().max(4000).optional().describe("Where to look; default /workspace."),
});

export const globTool: Tool<z.infer<typeof GlobArguments>> = {
  name: "glob",
  description: `Finds files by name, newest first, at most ${GLOB_RESULTS_MAX}. Leaves out .git and node_modules unless the pattern names them.`,
  parameters: GlobArguments,
  parallel: true,
  repeatable: true,
  subject: (args) => `glob:${args.pattern}`,
  async run(args, context) {
    const folder = absolutePath(args.folder ?? "/workspace");
    const { entries, truncated } = await context.sandbox.list(folder, { depth: 64, entriesMax: GLOB_ENTRIES_MAX });
    const wanted = (name: string) => name.split("/").every((part) => !SKIPPED.has(part) || args.pattern.includes(part));
    const found = entries.filter((entry) => entry.kind === "file" && wanted(entry.name) && matchesGlob(entry.name, args.pattern));
    found.sort((a, b) => b.modifiedMs - a.modifiedMs);
    const shown = found.slice(0, GLOB_RESULTS_MAX).map((entry) => shownPath(`${folder}/${entry.name}`));
    if (shown.length === 0) return { outcome: "ok", text: "No file matches." };
    const more = found.length > shown.length ? `\n\n[${found.length - shown.length} more; narrow the pattern]` : "";
    const cut = truncated ? `\n[only the first ${GLOB_ENTRIES_MAX} entries were looked at]` : "";
    return { outcome: "ok", text: `${shown.join("\n")}${more}${cut}` };
  },
};

const GrepArguments = z.strictObject({
  pattern: z.string().min(1).max(2000).describe("A regular expression."),
  path: z.string().max(4000).optional().describe("File or folder; default /workspace."),
  include: z.string().max(500).optional().describe("Only files whose name matches this glob, such as *.ts."),
  ignore_case: z.boolean().optional(),
});

export const grepTool: Tool<z.infer<typeof GrepArguments>> = {
  name: "grep",
  description: `Finds lines by regular expression, at most ${GREP_MATCHES_MAX} matches, in files of at most ${GREP_FILE_MEGABYTES_MAX} MB. Gives path:line:text.`,
  parameters: GrepArguments,
  parallel: true,
  repeatable: true,
  subject: (args) => `grep:${args.pattern}`,
  async run(args, context) {
    const path = absolutePath(args.path ?? "/workspace");
    const argv = (await hasRipgrep(context.sandbox)) ? ripgrepArgv(args, path) : grepArgv(args, path);
    const { ended, stdout, stderr } = await run(context.sandbox, {
      argv,
      timeoutMs: GREP_TIMEOUT_MS,
      outputBytesMax: GREP_OUTPUT_BYTES_MAX,
    });
    const lines = stdout
      .toString("utf8")
      .split("\n")
      .filter((line) => line !== "");
    if (ended.kind === "exited" && ended.exitCode > 1) {
      return { outcome: "error", text: `grep failed: ${stderr.toString("utf8").trim().slice(0, 500) || `exit ${ended.exitCode}`}` };
    }
    if (ended.kind === "timedOut")
      return { outcome: "error", text: `grep took longer than ${GREP_TIMEOUT_MS} ms; narrow it with path or include.` };
    if (lines.length === 0) return { outcome: "ok", text: "No line matches." };
    const shown = lines
      .slice(0, GREP_MATCHES_MAX)
      .map((line) => shorten(line.startsWith("/workspace/") ? line.slice("/workspace/".length) : line));
    const more = lines.length > shown.length ? `\n\n[more than ${GREP_MATCHES_MAX} matches; narrow it with path or include]` : "";
    return { outcome: "ok", text: `${shown.join("\n")}${more}` };
  },
};

function ripgrepArgv(args: z.infer<typeof GrepArguments>, path: string): string[] {
  return [
    "rg",
    "--line-number",
    "--no-heading",
    "--with-filename",
    "--color=never",
    "--hidden",
    "--no-messages",
    "--sort=path",
    "--glob=!.git",
    "--glob=!node_modules",
    `--max-filesize=${GREP_FILE_MEGABYTES_MAX}M`,
    `--max-columns=${LINE_CHARACTERS_MAX}`,
    ...(args.include === undefined ? [] : [`--glob=${args.include}`]),
    ...(args.ignore_case ? ["--ignore-case"] : []),
    "--regexp",
    args.pattern,
    "--",
    path,
  ];
}

function grepArgv(args: z.infer<typeof GrepArguments>, path: string): string[] {
  return [
    "grep",
    "-rnIHE",
    "--color=never",
    "--exclude-dir=.git",
    "--exclude-dir=node_modules",
    "-s",
    ...(args.include === undefined ? [] : [`--include=${args.include}`]),
    ...(args.ignore_case ? ["-i"] : []),
    "-e",
    args.pattern,
    "--",
    path,
  ];
}

const ripgrep = new WeakMap<Sandbox, Promise<boolean>>();

/** Asked once for each sandbox. */
function hasRipgrep(sandbox: Sandbox): Promise<boolean> {
  const known = ripgrep.get(sandbox);
  if (known) return known;
  const asked = run(sandbox, { argv: ["/bin/sh", "-c", "command -v rg"] }).then(
    ({ ended }) => ended.kind === "exited" && ended.exitCode === 0,
  );
  ripgrep.set(sandbox, asked);
  return asked;
}

const shorten = (line: string) => (line.length > LINE_CHARACTERS_MAX ? `${line.slice(0, LINE_CHARACTERS_MAX)}…` : line);
