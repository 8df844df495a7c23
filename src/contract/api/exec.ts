import { z } from "zod";
import { type AuditSubject, auditName } from "../audit/audit-text.ts";
import { ENV_CHARACTERS_MAX, LongText, recordOf } from "../bounded.ts";
import { EnvName } from "../ids.ts";
import { Ended } from "../outcome.ts";
import { SandboxPath } from "../sandbox/sandbox-fields.ts";

/** Commands and their results in the HTTP API. */

const ARGUMENTS_MAX = 10_000;
const text = z.string().refine((value) => !value.includes("\0"), "must not contain NUL");

export const ExecCommand = z.strictObject({
  /** The program and its arguments; never a shell string. */
  argv: z.array(text.max(131_072)).min(1).max(ARGUMENTS_MAX),
  /** Default `/workspace`. */
  cwd: SandboxPath.optional(),
  env: recordOf(EnvName, text.max(ENV_CHARACTERS_MAX), 1000).optional(),
  /** `user` (the default), `root` if the sandbox allows it, a decimal uid or `UID:GID`. */
  user: z.string().min(1).max(32).optional(),
  /** The command's standard input, as UTF-8. */
  input: LongText.optional(),
  /** Capped at the sandbox's own limit. */
  timeoutMs: z.int().min(1).max(86_400_000).optional(),
  /** The command is killed when its output exceeds this. */
  outputBytesMax: z.int().min(1).optional(),
});
export type ExecCommand = z.infer<typeof ExecCommand>;

/** Returns what the audit log records of a command. Its arguments, variables and input may be secrets. */
export function auditedCommand(command: {
  argv: string[];
  user?: string | undefined;
  ref?: string | undefined;
  pty?: unknown;
}): AuditSubject {
  const { argv, user, ref: process, pty } = command;
  return {
    program: auditName(argv[0]),
    user: auditName(user),
    process: auditName(process),
    terminal: auditName(pty === undefined ? undefined : "yes"),
  };
}

/** All or part of an output. Base64 if it is not UTF-8. */
export const Output = z.object({ encoding: z.enum(["utf8", "base64"]), text: z.string() });

export const ExecResult = z.object({
  ended: Ended,
  stdout: Output,
  stderr: Output,
  /** Whether the output was too long for one answer; use events for all of it. */
  truncated: z.boolean(),
});
export type ExecResult = z.infer<typeof ExecResult>;

/** The output of a command while it runs, and finally how it ended. */
export const ExecEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("output"), stream: z.enum(["stdout", "stderr"]), offset: z.int().nonnegative(), ...Output.shape }),
  z.object({ type: z.literal("ended"), ended: Ended }),
]);
export type ExecEvent = z.infer<typeof ExecEvent>;
