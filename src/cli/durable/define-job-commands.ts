import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from "../command.ts";
import { jsonOption } from "../options/runtime-options.ts";
import type { JobKind, SharedCommand } from "./job-commands.ts";

interface OwnWords {
  summary: string;
  details?: string;
  /** Default: `--json` alone. */
  options?: readonly OptionDefinition[];
  handlesSignals?: boolean;
  /** Default: the command with the kind's example id. */
  example?: string;
}

/** The reason for pausing or cancelling, for kinds whose verbs store one. */
export const reasonOption: OptionDefinition = { name: "text", value: "TEXT", summary: "Why" };

/**
 * Defines the commands that every kind of durable job shares: ls, show, pause, resume, cancel and rm. A kind names its
 * verb, an example id and the special parts of each command, and omits commands that it does not have.
 */
export function jobCommands<Name extends SharedCommand, View, Changed, Item>({
  verb,
  argument,
  exampleId,
  commands,
  load,
}: {
  verb: string;
  argument: ArgumentDefinition;
  exampleId: string;
  commands: Record<Name, OwnWords>;
  load: () => Promise<JobKind<View, Changed, Item>>;
}): Record<Name, CommandDefinition> {
  const define = (name: Name): CommandDefinition => {
    const { example, options = [jsonOption], ...words }: OwnWords = commands[name];
    return {
      path: [verb, name],
      ...words,
      options,
      arguments: name === "ls" ? [] : [{ ...argument, ...(name === "rm" && { repeat: true }) }],
      examples: [example ?? `caisson ${verb} ${name}${name === "ls" ? "" : ` ${exampleId}`}`],
      load: async () => {
        const [{ handleJobCommand }, kind] = await Promise.all([import("./job-commands.ts"), load()]);
        return (context, args) => handleJobCommand[name](context, args, kind);
      },
    };
  };
  const names = Object.keys(commands) as Name[];
  return Object.fromEntries(names.map((name) => [name, define(name)])) as Record<Name, CommandDefinition>;
}
