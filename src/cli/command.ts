import type { CliContext } from "./context.ts";

/** One option of a command, declared once: parsing, help and completion derive from it. */
export interface OptionSpec {
  name: string;
  short?: string;
  /** What the value is called in help; absent for a switch. */
  value?: string;
  /**
   * The value may be left out: then it is empty. The next word is the value where this says so; what follows `=` is in
   * any case.
   */
  isValue?: (word: string) => boolean;
  repeat?: boolean;
  summary: string;
  /** What completion offers for the value. */
  choices?: readonly string[];
  completes?: readonly Completed[];
}

export interface ArgumentSpec {
  name: string;
  summary: string;
  optional?: boolean;
  repeat?: boolean;
  /** What completion offers for it. Absent: files. */
  completes?: readonly Completed[];
}

/** Things with ids and names, which completion asks this program for; and files, which the shell itself knows. */
export type Completed = "sandbox" | "run" | "session" | "snapshot" | "file";

export interface CommandSpec {
  /** `["sandbox", "ls"]` for `caisson sandbox ls`. */
  path: readonly string[];
  summary: string;
  /** Said below the usage line. */
  details?: string;
  options: readonly OptionSpec[];
  arguments: readonly ArgumentSpec[];
  /** The first argument that is not an option, and all after it, are a command's own words. */
  takesCommand?: boolean;
  /**
   * It passes signals on and cleans up by itself; any other command is left where it is, and what it made is removed.
   */
  handlesSignals?: boolean;
  /**
   * Where it is done. Absent: by the station that runs or was chosen. `here`: by this process, whatever station there
   * is. `machine`: by this process unless a station elsewhere was chosen, since it is about this machine as its user
   * sees it.
   */
  place?: "here" | "machine";
  examples: readonly (readonly [line: string, meaning: string])[];
  /** Loaded only when the command is run, so that `exec` pays for nothing else. */
  load: () => Promise<{ run: (context: CliContext, given: ParsedArguments) => Promise<number> }>;
}

/** What was given on the command line, checked against the command's spec. */
export interface ParsedArguments {
  flag(name: string): boolean;
  option(name: string): string | undefined;
  options(name: string): readonly string[];
  /** Of those that were given. */
  readonly optionNames: readonly string[];
  readonly positionals: readonly string[];
}
