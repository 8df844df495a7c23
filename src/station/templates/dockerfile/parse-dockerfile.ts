import { dockerfileBounds, excerpt, inFile, problemAt } from "./dockerfile-problem.ts";
import type { Action, Command, Dockerfile, From, Instruction, Stage } from "./instruction.ts";
import { isHeredocWord, type LogicalLine, logicalLines } from "./logical-lines.ts";
import { jsonWords, splitWords } from "./split-words.ts";

/** Parses the Dockerfile at a path of the context, which errors name. */
export function parseFile(text: string, file: string): Dockerfile {
  try {
    return parseDockerfile(text);
  } catch (error) {
    throw inFile(error, file);
  }
}

/** Parses a Dockerfile. Throws `invalid`, `unsupported` and `too_large`, naming the line. */
export function parseDockerfile(text: string): Dockerfile {
  const { escapeMark, syntax, lines } = logicalLines(text);
  const notices = syntax === null ? [] : [`the syntax ${excerpt(syntax)} is not loaded: Caisson reads Dockerfiles itself`];
  const globals: Instruction[] = [];
  const stages: { from: From; instructions: Instruction[] }[] = [];
  for (const logical of lines) {
    const { line, keyword } = logical;
    if (keyword === "FROM") {
      if (stages.length >= dockerfileBounds.stagesMax)
        throw problemAt(line, `the file has more than ${dockerfileBounds.stagesMax} stages`, { code: "too_large" });
      stages.push({ from: parseFrom(logical, escapeMark, stages), instructions: [] });
      continue;
    }
    const action = parseAction(logical, escapeMark);
    const instruction: Instruction = { ...action, line, text: excerpt(`${keyword} ${logical.rest}`, 1000) };
    if (action.kind === "ignored") notices.push(`line ${line}: ${action.name} has no effect`);
    const stage = stages.at(-1);
    if (stage !== undefined) stage.instructions.push(instruction);
    else if (action.kind === "arg") globals.push(instruction);
    else throw problemAt(line, `${keyword} stands before the first FROM`, { hint: "Only ARG may." });
  }
  if (stages.length === 0) throw problemAt(1, "the file has no FROM");
  return { escapeMark, globals, stages, notices };
}

function parseFrom({ line, rest }: LogicalLine, escapeMark: string, stages: readonly Stage[]): From {
  const { flags, words } = takeFlags(splitWords(rest, escapeMark), { line, allowed: ["platform"] });
  const [image, as, name, ...more] = words;
  if (image === undefined || more.length > 0 || (as !== undefined && (as.toUpperCase() !== "AS" || name === undefined)))
    throw problemAt(line, "FROM takes an image, and optionally AS and a name");
  const stageName = name?.toLowerCase() ?? null;
  if (stageName !== null && !/^[a-z][a-z0-9._-]{0,127}$/.test(stageName))
    throw problemAt(line, `${excerpt(stageName)} cannot be the name of a stage`, {
      hint: "Begin with a letter; use letters, digits, . _ -",
    });
  if (stageName !== null && stages.some(({ from }) => from.name === stageName))
    throw problemAt(line, `two stages have the name ${stageName}`);
  return { line, text: `FROM ${excerpt(rest, 1000)}`, image, platform: flags.get("platform")?.at(-1) ?? null, name: stageName };
}

type Parser = (logical: LogicalLine, escapeMark: string) => Action;

const ignoredInstruction: Parser = ({ keyword }) => ({ kind: "ignored", name: keyword });

const parsers: Readonly<Record<string, Parser>> = {
  RUN: parseRun,
  COPY: (logical, escapeMark) => parseCopy("copy", logical, escapeMark),
  ADD: (logical, escapeMark) => parseCopy("add", logical, escapeMark),
  ENV: (logical, escapeMark) => ({ kind: "env", pairs: pairsOf(logical, escapeMark) }),
  LABEL: (logical, escapeMark) => ({ kind: "label", pairs: pairsOf(logical, escapeMark) }),
  ARG: ({ line, rest }, escapeMark) => ({ kind: "arg", pairs: splitWords(rest, escapeMark).map((word) => argument(word, line)) }),
  WORKDIR: (logical) => ({ kind: "workdir", word: required(logical) }),
  USER: (logical) => ({ kind: "user", word: required(logical) }),
  STOPSIGNAL: (logical) => ({ kind: "stopsignal", word: required(logical) }),
  EXPOSE: (logical, escapeMark) => ({ kind: "expose", words: splitWords(required(logical), escapeMark), isJson: false }),
  VOLUME: (logical, escapeMark) => {
    const json = jsonWords(required(logical));
    return { kind: "volume", words: json ?? splitWords(logical.rest, escapeMark), isJson: json !== null };
  },
  ENTRYPOINT: (logical) => ({ kind: "entrypoint", command: commandOf(logical.rest) }),
  CMD: (logical) => ({ kind: "cmd", command: commandOf(logical.rest) }),
  SHELL: ({ line, rest }) => {
    const argv = jsonWords(rest);
    if (argv === null || argv.length === 0) throw problemAt(line, "SHELL takes a JSON array of words");
    return { kind: "shell", argv };
  },
  HEALTHCHECK: ignoredInstruction,
  ONBUILD: ignoredInstruction,
  MAINTAINER: ignoredInstruction,
};

function parseAction(logical: LogicalLine, escapeMark: string): Action {
  const parser = Object.hasOwn(parsers, logical.keyword) ? parsers[logical.keyword] : undefined;
  if (parser === undefined) throw problemAt(logical.line, `${excerpt(logical.keyword, 40)} is not an instruction`);
  return parser(logical, escapeMark);
}

function required({ line, keyword, rest }: LogicalLine): string {
  if (rest === "") throw problemAt(line, `${keyword} needs an argument`);
  return rest;
}

function commandOf(rest: string): Command {
  const argv = jsonWords(rest);
  return argv === null ? { form: "shell", text: rest } : { form: "exec", argv };
}

/** `--name` and `--name=value` before the other words. Throws `unsupported` for a flag that is not in the list. */
function takeFlags(words: readonly string[], { line, allowed }: { line: number; allowed: readonly string[] }) {
  const flags = new Map<string, string[]>();
  let at = 0;
  for (; at < words.length; at += 1) {
    const [, name = "", value = "true"] = /^--([a-z-]+)(?:=(.*))?$/s.exec(words[at] as string) ?? [];
    if (name === "") break;
    if (!allowed.includes(name))
      throw problemAt(line, `--${name} is not supported`, {
        code: "unsupported",
        hint: allowed.length === 0 ? "Leave it out." : `Supported: ${allowed.map((each) => `--${each}`).join(", ")}.`,
      });
    flags.set(name, [...(flags.get(name) ?? []), value]);
  }
  return { flags, words: words.slice(at) };
}

/** Splits the flags from the text after them, which is a command and keeps its white space. */
function flagsOfCommand(rest: string): { flags: string[]; command: string } {
  const flags: string[] = [];
  let command = rest;
  for (;;) {
    const flag = /^--[a-z]+(?:=\S*)?(?=\s|$)/.exec(command)?.[0];
    if (flag === undefined) return { flags, command };
    flags.push(flag);
    command = command.slice(flag.length).trimStart();
  }
}

function parseRun(logical: LogicalLine): Action {
  const { line, heredocs, script } = logical;
  const { flags: raw, command } = flagsOfCommand(required(logical));
  const { flags } = takeFlags(raw, { line, allowed: ["network", "mount"] });
  const common = { kind: "run" as const, heredocs, network: flags.get("network")?.at(-1) ?? null, mounts: flags.get("mount") ?? [] };
  if (heredocs.length === 0) {
    if (command === "") throw problemAt(line, "RUN needs a command");
    return { ...common, command: commandOf(command) };
  }
  if (isHeredocWord(command)) return { ...common, command: { form: "shell", text: heredocs[0]?.content ?? "" } };
  // The shell reads the heredocs itself.
  return { ...common, heredocs: [], command: { form: "shell", text: script.slice(logical.rest.length - command.length) } };
}

const copyFlags = ["from", "chown", "chmod", "link", "exclude"];

function parseCopy(kind: "copy" | "add", logical: LogicalLine, escapeMark: string): Action {
  const { line, heredocs } = logical;
  const { flags, words: all } = takeFlags(splitWords(required(logical), escapeMark), {
    line,
    allowed: kind === "copy" ? copyFlags : ["chown", "chmod", "link", "exclude", "checksum"],
  });
  const json = jsonWords(all.join(" "));
  const words = json === null ? all : json.map((word) => escapeQuotes(word, escapeMark));
  const target = words.at(-1);
  const sources = words.slice(0, -1).filter((word) => !isHeredocWord(word));
  if (target === undefined || sources.length + heredocs.length === 0)
    throw problemAt(line, `${logical.keyword} needs at least one source and a target`);
  const last = (name: string) => flags.get(name)?.at(-1) ?? null;
  return {
    ...{ kind, sources, heredocs, target, excludes: flags.get("exclude") ?? [] },
    ...{ from: last("from"), chown: last("chown"), chmod: last("chmod"), checksum: last("checksum") },
  };
}

/** Keeps variables, but no quotes or escapes: words of a JSON array have none. */
function escapeQuotes(word: string, escapeMark: string): string {
  return [...word].map((character) => (["'", '"', escapeMark].includes(character) ? escapeMark + character : character)).join("");
}

function argument(word: string, line: number): readonly [string, string | null] {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?$/s.exec(word) ?? [];
  if (name === undefined) throw problemAt(line, `${excerpt(word)} is not the name of an argument`);
  return [name, value ?? null];
}

/** `NAME=value …`, or the older `NAME value with spaces`. */
function pairsOf(logical: LogicalLine, escapeMark: string): (readonly [string, string])[] {
  const { line, keyword } = logical;
  const words = splitWords(required(logical), escapeMark);
  const [first = ""] = words;
  if (!first.includes("=")) {
    const value = logical.rest.slice(first.length).trim();
    if (value === "") throw problemAt(line, `${keyword} needs a value for ${excerpt(first)}`);
    return [[first, value]];
  }
  return words.map((word) => {
    const at = word.indexOf("=");
    if (at <= 0) throw problemAt(line, `${excerpt(word)} is not NAME=VALUE`);
    return [word.slice(0, at), word.slice(at + 1)];
  });
}
