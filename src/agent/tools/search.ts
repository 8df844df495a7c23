import { z } from "zod";
import { compileGlob } from "../../lib/glob.ts";
import { createPauses } from "../../lib/pauses.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Tool } from "../tool.ts";
import { GLOB_ENTRIES_MAX, GLOB_RESULTS_MAX, GREP_FILE_MEGABYTES_MAX, GREP_MATCHES_MAX, LINE_CHARACTERS_MAX } from "./limits.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

/** Folders that agents never search, and that often hold most of the files. */
const SKIPPED = new Set([".git", "node_modules"]);
const GREP_TIMEOUT_MS = 30_000;
const GREP_OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

const GlobArguments = z.strictObject({
  pattern: z.string().min(1).max(1000).describe("Such as src/**/*.ts; matched against paths relative to the folder."),
  folder: z.string().max(4000).optional().describe("The folder to search; default /workspace."),
});

export const globTool: Tool<z.infer<typeof GlobArguments>> = {
  name: "glob",
  description: `Finds files by name, newest first, at most ${GLOB_RESULTS_MAX}. Skips .git and node_modules unless the pattern names them.`,
  parameters: GlobArguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: (args) => `glob:${args.pattern}`,
  async run(args, context) {
    const folder = absolutePath(args.folder ?? "/workspace");
    // Models sometimes write absolute patterns.
    const pattern = args.pattern.startsWith(`${folder}/`) ? args.pattern.slice(folder.length + 1) : args.pattern;
    const matches = compileGlob(pattern);
    if (matches === null) return { outcome: "error", text: MALFORMED };
    const { entries, truncated } = await context.sandbox.list(folder, { depth: 64, entriesMax: GLOB_ENTRIES_MAX });
    const isWanted = (name: string) => name.split("/").every((part) => !SKIPPED.has(part) || pattern.includes(part));
    const found: typeof entries = [];
    const pause = createPauses();
    for (const entry of entries) {
      if (entry.kind === "file" && isWanted(entry.name) && matches(entry.name)) found.push(entry);
      await pause();
    }
    found.sort((a, b) => b.modifiedMs - a.modifiedMs);
    const paths = found.slice(0, GLOB_RESULTS_MAX).map((entry) => shownPath(`${folder}/${entry.name}`));
    if (paths.length === 0) return { outcome: "ok", text: "No file matches." };
    const more = found.length > paths.length ? `\n\n[${found.length - paths.length} more; narrow the pattern]` : "";
    const cut = truncated ? `\n[searched only the first ${GLOB_ENTRIES_MAX} entries]` : "";
    return { outcome: "ok", text: `${paths.join("\n")}${more}${cut}` };
  },
};

const MALFORMED = "Invalid glob: use at most 1,000 characters, `*`, `**`, `?`, `[a-z]` and at most 64 alternatives in `{a,b}`.";

const GrepArguments = z.strictObject({
  pattern: z.string().min(1).max(2000).describe("A regular expression."),
  path: z.string().max(4000).optional().describe("The file or folder to search; default /workspace."),
  include: z.string().max(500).optional().describe("Only files whose name matches this glob, such as *.ts."),
  ignore_case: z.boolean().optional(),
});

export const grepTool: Tool<z.infer<typeof GrepArguments>> = {
  name: "grep",
  description: `Finds lines by regular expression, at most ${GREP_MATCHES_MAX} matches, in files of at most ${GREP_FILE_MEGABYTES_MAX} MB. Returns path:line:text.`,
  parameters: GrepArguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: (args) => `grep:${args.pattern}`,
  async run(args, context) {
    const includes = args.include === undefined || args.include.startsWith("!") ? () => true : compileGlob(args.include.replace(/^\//, ""));
    if (includes === null) return { outcome: "error", text: MALFORMED };
    const displayPath = shownPath(args.path ?? "/workspace");
    const path = displayPath === "/workspace" ? "." : displayPath.startsWith("/") ? displayPath : `./${displayPath}`;
    const { ended, stdout, stderr } = await runCommand(context.sandbox, {
      argv: ["/bin/sh", "-c", GREP_SCRIPT, "caisson-grep", args.pattern, path, args.include ?? "", args.ignore_case ? "yes" : ""],
      cwd: "/workspace",
      timeoutMs: GREP_TIMEOUT_MS,
      outputBytesMax: GREP_OUTPUT_BYTES_MAX,
    });
    if (ended.kind === "timedOut")
      return { outcome: "error", text: `grep took longer than ${GREP_TIMEOUT_MS} ms; narrow it with path or include.` };
    const lines = matchingLines(stdout, { path, includes });
    const complaint = stderr.trim();
    if (lines.length === 0) {
      return complaint === ""
        ? { outcome: "ok", text: "No line matches." }
        : { outcome: "error", text: `grep failed: ${complaint.slice(0, 500)}` };
    }
    const listed = lines.slice(0, GREP_MATCHES_MAX).map((line) => shorten(line.replace(/^\.\//, "")));
    const more = lines.length > listed.length ? `\n\n[more than ${GREP_MATCHES_MAX} matches; narrow it with path or include]` : "";
    return { outcome: "ok", text: `${listed.join("\n")}${more}` };
  },
};

/**
 * Runs ripgrep if the template has it, otherwise find and grep. Arguments: pattern, path, include, and any text to
 * ignore case.
 */
const GREP_SCRIPT = `
if [ ! -e "$2" ]; then echo "$2 does not exist" >&2; exit 2; fi
if command -v rg >/dev/null 2>&1; then
  exec rg --line-number --no-heading --with-filename --color=never --hidden --no-messages --sort=path --glob='!.git' --glob='!node_modules' \
    --max-filesize=${GREP_FILE_MEGABYTES_MAX}M --max-columns=${LINE_CHARACTERS_MAX} --max-columns-preview \
    \${3:+"--glob=$3"} \${4:+--ignore-case} --regexp "$1" -- "$2"
fi
exec find "$2" \\( -name .git -o -name node_modules \\) -prune -o -type f -size -${GREP_FILE_MEGABYTES_MAX * 2048 + 1} \
  -exec grep -nIHsE \${4:+-i} -e "$1" -- {} +
`;

/** Sorts the lines by path and drops files that are not included: plain grep prints them in the order of the disk. */
function matchingLines(output: string, options: { path: string; includes: (path: string) => boolean }): string[] {
  const found = output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ line, path: /^(.*?):\d+:/.exec(line)?.[1] ?? line }));
  // The sort is stable, so the lines of a file stay in order.
  found.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const included = found.filter(({ path }) => {
    const relative = path.startsWith(`${options.path}/`) ? path.slice(options.path.length + 1) : path;
    const name = relative.slice(relative.lastIndexOf("/") + 1);
    return options.includes(name) || options.includes(relative);
  });
  return included.map(({ line }) => line);
}

const shorten = (line: string) => (line.length > LINE_CHARACTERS_MAX ? `${line.slice(0, LINE_CHARACTERS_MAX)}…` : line);
