/** A Dockerfile after parsing. Words are raw: quotes and variables are resolved when the instruction runs. */

export interface Heredoc {
  /** The file's name in COPY. */
  name: string;
  content: string;
  /** Whether variables in it are replaced in COPY; false if its name is quoted. */
  expands: boolean;
}

export type Command = { form: "exec"; argv: readonly string[] } | { form: "shell"; text: string };

export interface CopyInstruction {
  kind: "copy" | "add";
  from: string | null;
  chown: string | null;
  chmod: string | null;
  checksum: string | null;
  excludes: readonly string[];
  sources: readonly string[];
  heredocs: readonly Heredoc[];
  target: string;
}

/** The options of a COPY that has none. */
export const plainCopy = { from: null, chown: null, chmod: null, checksum: null, excludes: [], heredocs: [] } as const;

export interface RunInstruction {
  kind: "run";
  command: Command;
  /** The heredoc that is the whole command. */
  heredocs: readonly Heredoc[];
  network: string | null;
  mounts: readonly string[];
  /** The user, instead of the stage's. */
  user?: string;
}

export type Action =
  | RunInstruction
  | CopyInstruction
  | { kind: "env" | "label"; pairs: readonly (readonly [name: string, value: string])[] }
  | { kind: "arg"; pairs: readonly (readonly [name: string, value: string | null])[] }
  | { kind: "workdir" | "user" | "stopsignal"; word: string }
  | { kind: "expose" | "volume"; words: readonly string[]; isJson: boolean }
  | { kind: "entrypoint" | "cmd"; command: Command }
  | { kind: "shell"; argv: readonly string[] }
  | { kind: "ignored"; name: string };

export type Instruction = Action & {
  /** The first line in its file. */
  line: number;
  text: string;
};

export interface From {
  line: number;
  text: string;
  /** The raw image, which may contain global arguments. */
  image: string;
  platform: string | null;
  name: string | null;
}

export interface Stage {
  from: From;
  instructions: readonly Instruction[];
}

export interface Dockerfile {
  /** The character that escapes. */
  escapeMark: "\\" | "`";
  /** The ARG instructions before the first FROM. */
  globals: readonly Instruction[];
  stages: readonly Stage[];
  /** What has no effect, each as a sentence. */
  notices: readonly string[];
}
