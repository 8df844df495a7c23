import { pipelinesOf, type Word } from "./shell-pipelines.ts";

/** Substitutions and nested scripts are followed to this depth. */
const DEPTH_MAX = 6;
/** The rest of a line with more distinct pipelines than this is not checked. */
const PIPELINES_MAX = 10_000;

export interface ShellLine {
  /**
   * Each command as its words without quotes, and without the assignments and wrappers before it: `git push --force`.
   */
  commands: string[];
  /** Pairs of programs where the first one's output feeds the second: `curl | sh`. */
  pipelines: string[];
  /** False if the line has more pipelines than are checked. */
  isComplete: boolean;
}

interface FoundCommands {
  commands: string[];
  pipelines: Set<string>;
}

/**
 * Finds the commands in a shell line without running it: between separators, in pipes, substitutions and subshells,
 * behind `env`, `sudo`, `sh -c`. This guards against carelessness, not malice; the sandbox is the security boundary.
 */
export function shellCommands(line: string): ShellLine {
  const found: FoundCommands = { commands: [], pipelines: new Set() };
  readScript(line, found, 0);
  const pipelines = [...found.pipelines].slice(0, PIPELINES_MAX);
  return { commands: found.commands, pipelines, isComplete: pipelines.length === found.pipelines.size };
}

const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"]);
const KEYWORDS = new Set(["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"]);
const WRAPPERS = new Set([
  "env",
  "sudo",
  "doas",
  "nohup",
  "command",
  "exec",
  "builtin",
  "nice",
  "ionice",
  "stdbuf",
  "timeout",
  "xargs",
  "setsid",
  "busybox",
]);
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;

/** Returns the programs that the script runs, for callers that consume their output. */
function readScript(script: string, found: FoundCommands, depth: number): string[] {
  if (depth > DEPTH_MAX) return [];
  const names: string[] = [];
  for (const pipeline of pipelinesOf(script)) {
    const programs: string[] = [];
    for (const words of pipeline.commands) {
      const { name, fed } = readCommand(words, found, depth);
      addPipelines(found, new Set(fed), name);
      if (name !== "") programs.push(name);
    }
    const earlier = new Set<string>();
    for (const program of programs) {
      addPipelines(found, earlier, program);
      earlier.add(program);
    }
    if (programs.some((program) => SHELLS.has(program))) for (const document of pipeline.documents) readScript(document, found, depth + 1);
    for (const program of programs) names.push(program);
  }
  return names;
}

/** Stops one above the limit, so the caller can see that it was exceeded. */
function addPipelines(found: FoundCommands, feeders: ReadonlySet<string>, program: string): void {
  for (const feeder of feeders) {
    if (found.pipelines.size > PIPELINES_MAX) return;
    found.pipelines.add(`${feeder} | ${program}`);
  }
}

function readCommand(all: readonly Word[], found: FoundCommands, depth: number): { name: string; fed: string[] } {
  const fed = all.flatMap((word) => word.inner.flatMap((script) => readScript(script, found, depth + 1)));
  const words = unwrap(all.map((word) => word.text));
  const [first = ""] = words;
  if (first === "") return { name: "", fed };
  const name = first.slice(first.lastIndexOf("/") + 1);
  const rest = words.slice(1);
  found.commands.push(canonical(name, rest));
  if (depth > DEPTH_MAX) return { name, fed };
  if (SHELLS.has(name)) {
    const flag = rest.findIndex((word) => /^-[a-z]*c$/.test(word));
    if (flag !== -1) readScript(rest[flag + 1] ?? "", found, depth + 1);
  }
  if (name === "eval") readScript(rest.join(" "), found, depth + 1);
  const exec = name === "find" ? rest.findIndex((word) => /^-(exec|execdir|ok|okdir)$/.test(word)) : -1;
  if (exec !== -1)
    readCommand(
      rest.slice(exec + 1).map((text) => ({ text, inner: [] })),
      found,
      depth + 1,
    );
  return { name, fed };
}

/** Drops the words before the actual command: assignments, keywords, and programs that only start another. */
function unwrap(words: readonly string[]): string[] {
  for (let at = 0; ; ) {
    const first = words[at] ?? "";
    const name = first.slice(first.lastIndexOf("/") + 1);
    if (ASSIGNMENT.test(first) || KEYWORDS.has(first)) at += 1;
    else if (WRAPPERS.has(name)) at = afterWrapper(name, words, at + 1);
    else return words.slice(at);
  }
}

/** Options that take a separate word as their value. Other options contain their value. */
const wrapperValues: Readonly<Record<string, RegExp>> = {
  env: /^-[uCS]$/,
  sudo: /^-[ugpCDhRTU]$/,
  nice: /^-n$/,
  ionice: /^-[cnp]$/,
  xargs: /^-[aEIdLnPs]$/,
  timeout: /^-[ks]$/,
  stdbuf: /^-[ioe]$/,
};

/** Returns the index of the command that a wrapper starts. The wrapper's own words begin at `from`. */
function afterWrapper(name: string, words: readonly string[], from: number): number {
  let at = from;
  while ((words[at] ?? "").startsWith("-") || (name === "env" && ASSIGNMENT.test(words[at] ?? "")))
    at += wrapperValues[name]?.test(words[at] ?? "") ? 2 : 1;
  return name === "timeout" ? at + 1 : at;
}

/** Returns the one spelling that rules match, for commands that can be written in several ways. */
function canonical(name: string, rest: readonly string[]): string {
  if (name === "git") return `git ${canonicalGit(rest)}`.trimEnd();
  if (name === "rm") return canonicalRm(rest);
  return [name, ...rest].join(" ");
}

const GIT_VALUES = /^(-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env)$/;

/** Returns git's words without the options before the subcommand. A forced push always becomes `push --force …`. */
export function canonicalGit(words: readonly string[]): string {
  let at = 0;
  while ((words[at] ?? "").startsWith("-")) at += GIT_VALUES.test(words[at] ?? "") ? 2 : 1;
  const [verb = "", ...rest] = words.slice(at);
  const force = (word: string) => /^--force(-with-lease|-if-includes)?(=|$)/.test(word) || /^-[a-zA-Z]*f/.test(word) || /^\+./.test(word);
  if (verb === "push" && rest.some(force)) return ["push", "--force", ...rest.filter((word) => !/^(--force|-f)$/.test(word))].join(" ");
  if (verb === "reset" && rest.includes("--hard")) return ["reset", "--hard", ...rest.filter((word) => word !== "--hard")].join(" ");
  return [verb, ...rest].join(" ").trim();
}

function canonicalRm(words: readonly string[]): string {
  const options = words.filter((word) => /^-./.test(word));
  const has = (short: RegExp, long: string) => options.some((word) => word === long || (/^-[^-]/.test(word) && short.test(word)));
  if (!has(/[rR]/, "--recursive") || !has(/f/, "--force")) return ["rm", ...words].join(" ");
  return ["rm", "-rf", ...words.filter((word) => !/^-./.test(word))].join(" ");
}
