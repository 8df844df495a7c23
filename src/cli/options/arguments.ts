import { CaissonError } from "../../contract/error/error.ts";
import { nearest } from "../../lib/nearest.ts";
import type { CommandDefinition, OptionSpec, ParsedArguments } from "../command.ts";

const helpOption: OptionSpec = { name: "help", short: "h", summary: "Show this help" };
const noStationOption: OptionSpec = { name: "no-station", summary: "Run in this process, even if a station is running or selected" };
const contextOption: OptionSpec = {
  name: "context",
  value: "NAME",
  summary: "Work with the station of this context (see `caisson context`)",
};

/** Returns a command's options, including those that every command has. */
export function optionsOf({ options, place }: Pick<CommandDefinition, "options" | "place">): readonly OptionSpec[] {
  return [...options, ...(place === "here" ? [] : [contextOption, noStationOption]), helpOption];
}

/**
 * Checks arguments against a command's definition. Throws `invalid`, naming the nearest option or the missing argument.
 */
export function parseArguments(spec: CommandDefinition, argv: readonly string[]): ParsedArguments {
  const options = optionsOf(spec);
  const found = new Map<string, string[]>();
  const words: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--") {
      words.push(...rest);
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      words.push(word);
      if (spec.takesCommand !== true) continue;
      words.push(...rest);
      break;
    }
    const { option, inline } = findOption({ spec, options, word });
    if (option.value === undefined) {
      if (inline !== undefined && word.startsWith("--")) throw usage(spec, `--${option.name} takes no value`);
      found.set(option.name, ["true"]);
      // `-it` is `-i -t`.
      if (inline !== undefined) rest.unshift(`-${inline}`);
      continue;
    }
    const isLeftOut = inline === undefined && option.isValue !== undefined && !option.isValue(rest[0] ?? "");
    const value = isLeftOut ? "" : (inline ?? rest.shift());
    if (value === undefined) throw usage(spec, `--${option.name} needs a value: ${option.value}`);
    const before = found.get(option.name) ?? [];
    if (before.length > 0 && option.repeat !== true) throw usage(spec, `--${option.name} is given twice`);
    found.set(option.name, [...before, value]);
  }
  if (!found.has("help")) checkPositionals(spec, words);
  return toParsedArguments(spec, found, words);
}

function findOption(context: { spec: CommandDefinition; options: readonly OptionSpec[]; word: string }): {
  option: OptionSpec;
  inline?: string;
} {
  const { spec, options, word } = context;
  if (word.startsWith("--")) {
    const equals = word.indexOf("=");
    const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
    const option = options.find((candidate) => candidate.name === name);
    if (option !== undefined) return equals < 0 ? { option } : { option, inline: word.slice(equals + 1) };
    const near = nearest(
      name,
      options.map((candidate) => candidate.name),
    );
    throw usage(spec, `unknown option --${name}`, near === null ? undefined : `Did you mean --${near}?`);
  }
  const option = options.find((candidate) => candidate.short === word[1]);
  if (option === undefined) throw usage(spec, `unknown option ${word}`);
  return word.length === 2 ? { option } : { option, inline: word.slice(2) };
}

function checkPositionals(spec: CommandDefinition, words: readonly string[]): void {
  if (spec.takesCommand === true) {
    const needed = spec.arguments.find((argument) => argument.optional !== true);
    if (needed !== undefined && words.length === 0) throw usage(spec, "no command was given");
    if (words[0] === "") throw usage(spec, "the command is empty");
    return;
  }
  const needed = spec.arguments.filter((argument) => argument.optional !== true);
  const missing = needed[words.length];
  if (missing !== undefined) throw usage(spec, `${missing.name} is missing: ${missing.summary}`);
  const last = spec.arguments.at(-1);
  if (words.length > spec.arguments.length && last?.repeat !== true) {
    throw usage(spec, `unexpected argument ${JSON.stringify(words[spec.arguments.length])}`);
  }
}

function toParsedArguments(
  spec: CommandDefinition,
  found: ReadonlyMap<string, readonly string[]>,
  words: readonly string[],
): ParsedArguments {
  const declared = new Set(optionsOf(spec).map((option) => option.name));
  const values = (name: string): readonly string[] => {
    if (!declared.has(name)) throw new CaissonError("internal", `${spec.path.join(" ")} has no option --${name}`);
    return found.get(name) ?? [];
  };
  return {
    flag: (name) => values(name).length > 0,
    option: (name) => values(name)[0],
    options: values,
    optionNames: [...found.keys()],
    positionals: words,
  };
}

function usage(spec: CommandDefinition, problem: string, hint?: string): CaissonError {
  const name = `caisson ${spec.path.join(" ")}`;
  return new CaissonError("invalid", `${spec.path.join(" ")}: ${problem}`, { hint: hint ?? `See: ${name} --help` });
}
