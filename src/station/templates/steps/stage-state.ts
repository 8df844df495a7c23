import { posix } from "node:path";
import type { TemplateConfig } from "../../../contract/template/template.ts";
import { dockerfileBounds, excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import { expandWord, expansionBudget } from "../dockerfile/expand-word.ts";
import type { Command, Instruction } from "../dockerfile/instruction.ts";
import { splitWords } from "../dockerfile/split-words.ts";

/** The settings of a stage at one instruction. Each instruction makes a new state. */
export interface StageState {
  config: TemplateConfig;
  /** ARG values; an ENV of the same name takes precedence. */
  args: Readonly<Record<string, string>>;
  shell: readonly string[];
  escapeMark: "\\" | "`";
}

export const defaultShell: readonly string[] = ["/bin/sh", "-c"];
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Bytes of all variables or labels of a stage together. */
const TABLE_BYTES_MAX = 1024 * 1024;
const TABLE_ENTRIES_MAX = 1000;
const VALUE_BYTES_MAX = 131_072;
const LIST_MAX = 1000;

export const emptyConfig: TemplateConfig = {
  ...{ env: {}, workdir: "/", user: null, entrypoint: null, command: null },
  ...{ labels: {}, ports: [], volumes: [], stopSignal: null },
};

/** Returns the variables of commands: those of the stage, with its arguments below. */
export const variablesOf = ({ config, args }: StageState): Record<string, string> => ({ ...args, ...config.env });

/** Returns a function that expands the words of one instruction, within one bound. */
export function wordExpander(state: StageState, line: number): (raw: string) => string {
  const budget = expansionBudget();
  return (raw) => expand(state, raw, line, budget);
}

export function expand(state: StageState, raw: string, line: number, budget = expansionBudget()): string {
  const { escapeMark, args, config } = state;
  const own = (table: Readonly<Record<string, string>>, name: string) => (Object.hasOwn(table, name) ? table[name] : undefined);
  const lookUp = (name: string) => own(config.env, name) ?? own(args, name) ?? (name === "PATH" ? DEFAULT_PATH : undefined);
  return expandWord(raw, { line, escapeMark, lookUp, budget });
}

/**
 * Applies an instruction that only changes settings. Returns the state unchanged for one that changes files. `argOf`
 * returns the value that the caller or the file's head gives an argument.
 */
export function applySetting(state: StageState, instruction: Instruction, argOf: (name: string) => string | undefined): StageState {
  const { line } = instruction;
  const { config } = state;
  const withConfig = (changes: Partial<TemplateConfig>): StageState => ({ ...state, config: { ...config, ...changes } });
  const word = wordExpander(state, line);
  switch (instruction.kind) {
    case "env":
      return withConfig({ env: withPairs(config.env, variables(instruction.pairs, line), { line, value: word }) });
    case "label":
      return withConfig({
        labels: withPairs(
          config.labels,
          instruction.pairs.map(([name, value]) => [word(name), value]),
          { line, value: word },
        ),
      });
    case "arg":
      return { ...state, args: withArguments(state, instruction.pairs, { line, argOf }) };
    case "workdir":
      return withConfig({ workdir: insidePath(word(instruction.word), config.workdir, line) });
    case "user":
      return withConfig({ user: word(instruction.word) });
    case "stopsignal":
      return withConfig({ stopSignal: word(instruction.word).slice(0, 256) });
    case "expose":
      return withConfig({ ports: appendWords(config.ports, expandedWords(instruction.words, word, state.escapeMark)) });
    case "volume":
      return withConfig({
        volumes: appendWords(
          config.volumes,
          instruction.isJson ? instruction.words : expandedWords(instruction.words, word, state.escapeMark),
        ),
      });
    case "entrypoint":
      // As in Docker, a CMD of the base is only meant for the base's own ENTRYPOINT.
      return withConfig({ entrypoint: argvOf(instruction.command, state.shell), command: null });
    case "cmd":
      return withConfig({ command: argvOf(instruction.command, state.shell) });
    case "shell":
      return { ...state, shell: instruction.argv };
    default:
      return state;
  }
}

export const argvOf = (command: Command, shell: readonly string[]): string[] =>
  command.form === "exec" ? [...command.argv] : [...shell, command.text];

/** Returns a path inside as absolute, without `..`. */
export function insidePath(path: string, workdir: string, line: number): string {
  if (path === "" || path.includes("\0") || path.length > 4095) throw problemAt(line, `${JSON.stringify(excerpt(path))} is not a path`);
  return posix.resolve("/", workdir, path);
}

function variables(pairs: readonly (readonly [string, string])[], line: number): readonly (readonly [string, string])[] {
  for (const [name] of pairs)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name) || name === "__proto__")
      throw problemAt(line, `${JSON.stringify(excerpt(name))} is not the name of a variable`);
  return pairs;
}

function withPairs(
  table: Readonly<Record<string, string>>,
  pairs: readonly (readonly [string, string])[],
  { line, value }: { line: number; value: (raw: string) => string },
): Record<string, string> {
  // All values of one instruction see the variables before it.
  const all = { ...table, ...Object.fromEntries(pairs.map(([name, raw]) => [name, value(raw)])) };
  checkTable(all, line);
  return all;
}

function checkTable(table: Readonly<Record<string, string>>, line: number): void {
  const entries = Object.entries(table);
  const sizes = entries.map(([name, text]) => Buffer.byteLength(name) + Buffer.byteLength(text) + 2);
  const isTooLarge =
    entries.length > TABLE_ENTRIES_MAX ||
    sizes.some((size) => size > VALUE_BYTES_MAX) ||
    sizes.reduce((sum, size) => sum + size, 0) > TABLE_BYTES_MAX;
  if (isTooLarge) throw problemAt(line, "the variables, arguments or labels are too large", { code: "too_large" });
  if (entries.some(([, text]) => text.includes("\0"))) throw problemAt(line, "a value contains NUL");
}

function withArguments(
  state: StageState,
  pairs: readonly (readonly [string, string | null])[],
  { line, argOf }: { line: number; argOf: (name: string) => string | undefined },
): Record<string, string> {
  let { args } = state;
  const budget = expansionBudget();
  for (const [name, raw] of pairs) {
    const value = argOf(name) ?? (raw === null ? undefined : expand({ ...state, args }, raw, line, budget));
    if (value !== undefined) args = { ...args, [name]: value };
  }
  checkTable(args, line);
  return { ...args };
}

function expandedWords(words: readonly string[], word: (raw: string) => string, escapeMark: string): string[] {
  return words.flatMap((raw) => splitWords(word(raw), escapeMark));
}

function appendWords(list: readonly string[], words: readonly string[]): string[] {
  const all = [...new Set([...list, ...words.map((word) => word.slice(0, dockerfileBounds.expandedMax).slice(0, 256))])];
  return all.slice(0, LIST_MAX);
}
