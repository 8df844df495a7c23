/** Substitutions and scripts within scripts are followed this deep. */
const DEPTH_MAX = 6;

export interface ShellLine {
  /** Each command as its words without quotes, without variables and wrappers before it: `git push --force`. */
  commands: string[];
  /** Which program's output goes into which, by name: `curl | sh`. */
  pipelines: string[];
}

/**
 * The commands in a shell line, as far as they can be seen without running it: between separators, in pipes,
 * substitutions and subshells, behind `env`, `sudo`, `sh -c`. It guards against carelessness, not against malice: the
 * wall is the sandbox.
 */
export function shellCommands(line: string): ShellLine {
  const found: ShellLine = { commands: [], pipelines: [] };
  readScript(line, found, 0);
  return found;
}

interface Word {
  text: string;
  /** Scripts in substitutions of this word. */
  inner: string[];
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

/** Returns the programs it runs, for whoever takes their output. */
function readScript(script: string, found: ShellLine, depth: number): string[] {
  if (depth > DEPTH_MAX) return [];
  const names: string[] = [];
  for (const pipeline of pipelinesOf(script)) {
    const programs: string[] = [];
    for (const words of pipeline.commands) {
      const { name, fed } = readCommand(words, found, depth);
      for (const feeder of fed) found.pipelines.push(`${feeder} | ${name}`);
      if (name !== "") programs.push(name);
    }
    for (const [at, program] of programs.entries())
      for (const later of programs.slice(at + 1)) found.pipelines.push(`${program} | ${later}`);
    if (programs.some((program) => SHELLS.has(program))) for (const document of pipeline.documents) readScript(document, found, depth + 1);
    names.push(...programs);
  }
  return names;
}

function readCommand(all: readonly Word[], found: ShellLine, depth: number): { name: string; fed: string[] } {
  const fed = all.flatMap((word) => word.inner.flatMap((script) => readScript(script, found, depth + 1)));
  const words = unwrap(all.map((word) => word.text));
  const [first = ""] = words;
  if (first === "") return { name: "", fed };
  const name = first.slice(first.lastIndexOf("/") + 1);
  const rest = words.slice(1);
  found.commands.push(canonical(name, rest));
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

/** Drops what stands before a command: assignments, keywords, and programs that only start another. */
function unwrap(words: readonly string[]): string[] {
  let left = [...words];
  for (;;) {
    const [first = ""] = left;
    const name = first.slice(first.lastIndexOf("/") + 1);
    if (ASSIGNMENT.test(first) || KEYWORDS.has(first)) left = left.slice(1);
    else if (WRAPPERS.has(name)) left = afterWrapper(name, left.slice(1));
    else return left;
  }
}

/** Options that take a word of their own; of others the value is part of the option. */
const wrapperValues: Readonly<Record<string, RegExp>> = {
  env: /^-[uCS]$/,
  sudo: /^-[ugpCDhRTU]$/,
  nice: /^-n$/,
  ionice: /^-[cnp]$/,
  xargs: /^-[aEIdLnPs]$/,
  timeout: /^-[ks]$/,
  stdbuf: /^-[ioe]$/,
};

function afterWrapper(name: string, words: string[]): string[] {
  let at = 0;
  while ((words[at] ?? "").startsWith("-") || (name === "env" && ASSIGNMENT.test(words[at] ?? "")))
    at += wrapperValues[name]?.test(words[at] ?? "") ? 2 : 1;
  if (name === "timeout") at += 1;
  return words.slice(at);
}

/** One way to write what can be written in several, for the commands that rules are about. */
function canonical(name: string, rest: readonly string[]): string {
  if (name === "git") return `git ${canonicalGit(rest)}`.trimEnd();
  if (name === "rm") return canonicalRm(rest);
  return [name, ...rest].join(" ");
}

const GIT_VALUES = /^(-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env)$/;

/** git's words without options before the subcommand; a forced push, however it is forced, as `push --force …`. */
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
  return ["rm", "-rf", ...words.filter((word) => !options.includes(word))].join(" ");
}

interface Pipeline {
  commands: Word[][];
  /** Here-documents: what is fed to the pipeline, not run, unless a shell reads it. */
  documents: string[];
}

function pipelinesOf(script: string): Pipeline[] {
  const pipelines: Pipeline[] = [];
  let pipeline: Pipeline = { commands: [], documents: [] };
  let words: Word[] = [];
  let word: Word | null = null;
  let awaited: string[] = [];
  const endWord = () => {
    if (word) words.push(word);
    word = null;
  };
  const endCommand = () => {
    endWord();
    if (words.length > 0) pipeline.commands.push(words);
    words = [];
  };
  const endPipeline = () => {
    endCommand();
    if (pipeline.commands.length > 0) pipelines.push(pipeline);
    pipeline = { commands: [], documents: [] };
  };
  const add = (text: string) => {
    word ??= { text: "", inner: [] };
    word.text += text;
  };
  const addInner = (inner: string) => {
    add("");
    word?.inner.push(inner);
  };
  for (let at = 0; at < script.length; ) {
    const character = script[at] as string;
    const next = script[at + 1];
    if (character === "'") {
      const end = endOf(script, at + 1, "'");
      add(script.slice(at + 1, end));
      at = end + 1;
    } else if (character === '"') at = readDouble(script, at + 1, { add, addInner });
    else if (character === "\\") {
      if (next !== "\n") add(next ?? "");
      at += 2;
    } else if ((character === "$" || character === "<" || character === ">") && next === "(") {
      const end = closing(script, at + 2);
      addInner(script.slice(at + 2, end));
      at = end + 1;
    } else if (character === "`") {
      const end = endOf(script, at + 1, "`");
      addInner(script.slice(at + 1, end));
      at = end + 1;
    } else if (character === "#" && word === null) at = endOf(script, at, "\n");
    else if (script.startsWith("<<", at) && script[at + 2] !== "<") {
      const mark = /^<<-?\s*(['"]?)([\w.-]+)\1/.exec(script.slice(at, at + 200));
      if (mark?.[2]) awaited.push(mark[2]);
      endWord();
      at += mark?.[0].length ?? 2;
    } else if (character === "\n") {
      const body = readDocuments(script, at + 1, awaited);
      pipeline.documents.push(...body.documents);
      awaited = [];
      endPipeline();
      at = body.next;
    } else if (character === "|" && next !== "|") {
      endCommand();
      at += next === "&" ? 2 : 1;
    } else if (character === "&" && (next === ">" || script[at - 1] === ">" || script[at - 1] === "<")) {
      add(character);
      at += 1;
    } else if (";&|()".includes(character)) {
      endPipeline();
      at += 1;
    } else if (character === " " || character === "\t" || character === "\r") {
      endWord();
      at += 1;
    } else {
      add(character);
      at += 1;
    }
  }
  endPipeline();
  return pipelines;
}

function readDouble(script: string, start: number, into: { add: (text: string) => void; addInner: (script: string) => void }): number {
  into.add("");
  for (let at = start; at < script.length; ) {
    const character = script[at] as string;
    if (character === '"') return at + 1;
    if (character === "\\") {
      const next = script[at + 1] ?? "";
      into.add('$`"\\\n'.includes(next) ? next : `\\${next}`);
      at += 2;
    } else if (character === "$" && script[at + 1] === "(") {
      const end = closing(script, at + 2);
      into.addInner(script.slice(at + 2, end));
      at = end + 1;
    } else if (character === "`") {
      const end = endOf(script, at + 1, "`");
      into.addInner(script.slice(at + 1, end));
      at = end + 1;
    } else {
      into.add(character);
      at += 1;
    }
  }
  return script.length;
}

function readDocuments(script: string, start: number, marks: readonly string[]): { documents: string[]; next: number } {
  const documents: string[] = [];
  let at = start;
  for (const mark of marks) {
    const lines: string[] = [];
    while (at < script.length) {
      const end = endOf(script, at, "\n");
      const line = script.slice(at, end);
      at = end + 1;
      if (line.trim() === mark) break;
      lines.push(line);
    }
    documents.push(lines.join("\n"));
  }
  return { documents, next: at };
}

/** Where the bracket closes that was opened before `start`, quotes looked through. */
function closing(script: string, start: number): number {
  let depth = 1;
  for (let at = start; at < script.length; at++) {
    const character = script[at];
    if (character === "\\") at += 1;
    else if (character === "'") at = endOf(script, at + 1, "'");
    else if (character === "(") depth += 1;
    else if (character === ")") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return script.length;
}

function endOf(script: string, start: number, mark: string): number {
  const end = script.indexOf(mark, start);
  return end === -1 ? script.length : end;
}
