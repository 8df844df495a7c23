import { CaissonError } from "../../contract/error/error.ts";
import { nearest } from "../../lib/nearest.ts";
import type { CommandDefinition, OptionDefinition, ParsedArguments } from "../command.ts";

const helpOption: OptionDefinition = { name: "help", short: "h", summary: "Show this help" };
const noStationOption: OptionDefinition = { name: "no-station", summary: "Run in this process, even if a station is running or selected" };
const contextOption: OptionDefinition = {
  name: "context",
  value: "NAME",
  summary: "Work with the station of this context (see `caisson context`)",
};

/** Returns a command's options, including those that every command has. */
export function optionsOf({ options, place }: Pick<CommandDefinition, "options" | "place">): readonly OptionDefinition[] {
  return [...options, ...(place === "here" ? [] : [contextOption, noStationOption]), helpOption];
}

/**
 * Checks arguments against a command's definition. Throws `invalid`, naming the nearest option or the missing argument.
 */
export function parseArguments(definition: CommandDefinition, argv: readonly string[]): ParsedArguments {
  const options = optionsOf(definition);
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
      if (definition.takesCommand !== true) continue;
      words.push(...rest);
      break;
    }
    const { option, inline } = findOption({ definition, options, word });
    if (option.value === undefined) {
      if (inline !== undefined && word.startsWith("--")) throw usage(definition, `--${option.name} takes no value`);
      found.set(option.name, ["true"]);
      // `-it` is `-i -t`.
      if (inline !== undefined) rest.unshift(`-${inline}`);
      continue;
    }
    const isLeftOut = inline === undefined && option.isValue !== undefined && !option.isValue(rest[0] ?? "");
    const value = isLeftOut ? "" : (inline ?? rest.shift());
    if (value === undefined) throw usage(definition, `--${option.name} needs a value: ${option.value}`);
    const before = found.get(option.name) ?? [];
    if (before.length > 0 && option.repeat !== true) throw usage(definition, `--${option.name} is given twice`);
    found.set(option.name, [...before, value]);
  }
  if (!found.has("help")) checkPositionals(definition, words);
  return toParsedArguments(definition, found, words);
}

function findOption(context: { definition: CommandDefinition; options: readonly OptionDefinition[]; word: string }): {
  option: OptionDefinition;
  inline?: string;
} {
  const { definition, options, word } = context;
  if (word.startsWith("--")) {
    const equals = word.indexOf("=");
    const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
    const option = options.find((candidate) => candidate.name === name);
    if (option !== undefined) return equals < 0 ? { option } : { option, inline: word.slice(equals + 1) };
    const near = nearest(
      name,
      options.map((candidate) => candidate.name),
    );
    throw usage(definition, `unknown option --${name}`, near === null ? undefined : `Did you mean --${near}?`);
  }
  const option = options.find((candidate) => candidate.short === word[1]);
  if (option === undefined) throw usage(definition, `unknown option ${word}`);
  return word.length === 2 ? { option } : { option, inline: word.slice(2) };
}

function checkPositionals(definition: CommandDefinition, words: readonly string[]): void {
  if (definition.takesCommand === true) {
    const needed = definition.arguments.find((argument) => argument.optional !== true);
    if (needed !== undefined && words.length === 0) throw usage(definition, "no command was given");
    if (words[0] === "") throw usage(definition, "the command is empty");
    return;
  }
  const needed = definition.arguments.filter((argument) => argument.optional !== true);
  const missing = needed[words.length];
  if (missing !== undefined) throw usage(definition, `${missing.name} is missing: ${missing.summary}`);
  const last = definition.arguments.at(-1);
  if (words.length > definition.arguments.length && last?.repeat !== true) {
    throw usage(definition, `unexpected argument ${JSON.stringify(words[definition.arguments.length])}`);
  }
}

function toParsedArguments(
  definition: CommandDefinition,
  found: ReadonlyMap<string, readonly string[]>,
  words: readonly string[],
): ParsedArguments {
  const declared = new Set(optionsOf(definition).map((option) => option.name));
  const values = (name: string): readonly string[] => {
    if (!declared.has(name)) throw new CaissonError("internal", `${definition.path.join(" ")} has no option --${name}`);
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

function usage(definition: CommandDefinition, problem: string, hint?: string): CaissonError {
  const name = `caisson ${definition.path.join(" ")}`;
  return new CaissonError("invalid", `${definition.path.join(" ")}: ${problem}`, { hint: hint ?? `See: ${name} --help` });
}
