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

/** Returns an error that names the line, unless it is 0: then the instruction has none. */
export function problemAt(line: number, message: string, options: { code?: ErrorCode; hint?: string } = {}): CaissonError {
  const { code = "invalid", hint } = options;
  return new CaissonError(code, line > 0 ? `line ${line}: ${message}` : message, {
    details: { line },
    ...(hint !== undefined && { hint }),
  });
}

/** Names the line in an error of an instruction, unless the error names one. */
export function atLine(error: unknown, line: number): unknown {
  if (!(error instanceof CaissonError) || error.code === "cancelled" || error.details?.line !== undefined) return error;
  const { code, hint, details, cause } = error;
  const message = line > 0 ? `line ${line}: ${error.message}` : error.message;
  return new CaissonError(code, message, { details: { ...details, line }, cause, ...(hint !== undefined && { hint }) });
}

/** Names the file in an error that names a line of it. */
export function inFile(error: unknown, file: string): unknown {
  if (!(error instanceof CaissonError) || error.details?.line === undefined || error.details.file !== undefined) return error;
  const { code, hint, details, cause } = error;
  const message = details.line === 0 ? `${file}: ${error.message}` : `${file} ${error.message}`;
  return new CaissonError(code, message, { details: { ...details, file }, cause, ...(hint !== undefined && { hint }) });
}

/** The start of a text, for messages. */
export const excerpt = (text: string, charactersMax = 120) =>
  text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`;
