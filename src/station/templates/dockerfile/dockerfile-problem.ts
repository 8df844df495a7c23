import { CaissonError, type ErrorCode } from "../../../contract/error/error.ts";

/** Bounds on a Dockerfile, which strangers may write. */
export const dockerfileBounds = {
  bytesMax: 1024 * 1024,
  linesMax: 20_000,
  instructionsMax: 1_000,
  stagesMax: 64,
  /** Characters of one instruction after its variables are replaced. */
  expandedMax: 256 * 1024,
  /** How deep `${A:-${B:-…}}` may nest. */
  nestingMax: 16,
} as const;

/** Returns an error that names the line. */
export function problemAt(line: number, message: string, options: { code?: ErrorCode; hint?: string } = {}): CaissonError {
  const { code = "invalid", hint } = options;
  return new CaissonError(code, `line ${line}: ${message}`, { details: { line }, ...(hint !== undefined && { hint }) });
}

/** The start of a text, for messages. */
export const excerpt = (text: string, charactersMax = 120) =>
  text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`;
