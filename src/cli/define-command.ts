import type { CommandDefinition } from "./command.ts";
import { jsonOption } from "./options/runtime-options.ts";

/** A command as its file declares it; what most commands share may be omitted. */
interface CommandWords extends Omit<CommandDefinition, "options" | "arguments"> {
  /** Default: `--json` alone. */
  options?: CommandDefinition["options"];
  /** Default: none. */
  arguments?: CommandDefinition["arguments"];
}

/** Completes the declaration in place: copies of all commands would add a millisecond to every start. */
export function defineCommand(words: CommandWords): CommandDefinition {
  words.options ??= [jsonOption];
  words.arguments ??= [];
  return words as CommandDefinition;
}

export const defineCommands = (words: readonly CommandWords[]): readonly CommandDefinition[] => words.map(defineCommand);
