import type { CliContext } from "./context.ts";

/** An option of a command. Parsing, help and completion derive from this declaration. */
export interface OptionDefinition {
  name: string;
  short?: string;
  /** The placeholder for the value in help; absent for a switch. */
  value?: string;
  /**
   * Makes the value optional; an omitted value is empty. The next word is the value if this function returns true. Text
   * after `=` is always the value.
   */
  isValue?: (word: string) => boolean;
  repeat?: boolean;
  summary: string;
  /** Values that completion offers. */
  choices?: readonly string[];
  completes?: readonly Completed[];
}

export interface ArgumentDefinition {
  name: string;
  summary: string;
  optional?: boolean;
  repeat?: boolean;
  /** What completion offers. Default: files. */
  completes?: readonly Completed[];
}

/** The kinds that completion can list. This program lists things with ids and names, and the shell lists files. */
export type Completed = "sandbox" | "run" | "session" | "snapshot" | "template" | "file";

export interface CommandDefinition {
  /** `["sandbox", "ls"]` for `caisson sandbox ls`. */
  path: readonly string[];
  summary: string;
  /** Shown below the usage line. */
  details?: string;
  options: readonly OptionDefinition[];
  arguments: readonly ArgumentDefinition[];
  /** The first argument that is not an option starts the user's own command line. */
  takesCommand?: boolean;
  /**
   * The command forwards signals and cleans up itself. A signal ends any other command at once, and what it created is
   * removed.
   */
  handlesSignals?: boolean;
  /**
   * Where the command does its work. Default: in the station that runs or was selected. `here`: always in this process.
   * `machine`: in this process unless a remote station was selected, because it concerns this machine as its user sees
   * it.
   */
  place?: "here" | "machine";
  /** Command lines, each with an explanation unless it is obvious. */
  examples: readonly (string | readonly [line: string, meaning: string])[];
  /** Imports the implementation only when the command runs, so that `exec` does not pay for it. */
  load: () => Promise<RunCommand>;
}

/** Runs a command and resolves with its exit code. */
export type RunCommand = (context: CliContext, args: ParsedArguments) => Promise<number>;

/** The command line's words, checked against the command's definition. */
export interface ParsedArguments {
  flag(name: string): boolean;
  option(name: string): string | undefined;
  options(name: string): readonly string[];
  /** The options that the command line contained. */
  readonly optionNames: readonly string[];
  readonly positionals: readonly string[];
}
