import { sentence } from "./sentence.ts";

/**
 * The closed table of error codes. `exitCode` is for the CLI, `httpStatus` for the API; `retryable` means that the same
 * call may succeed later without any intervention.
 */
export const errorCodes = {
  invalid: { httpStatus: 400, exitCode: 125, retryable: false },
  unauthenticated: { httpStatus: 401, exitCode: 125, retryable: false },
  denied: { httpStatus: 403, exitCode: 125, retryable: false },
  not_found: { httpStatus: 404, exitCode: 125, retryable: false },
  exists: { httpStatus: 409, exitCode: 125, retryable: false },
  conflict: { httpStatus: 409, exitCode: 125, retryable: false },
  /** Another process took over this one's work. This one stops, and the work is intact. */
  superseded: { httpStatus: 409, exitCode: 123, retryable: false },
  gone: { httpStatus: 410, exitCode: 125, retryable: false },
  /** The caller wants to change a different version than the current one. */
  stale: { httpStatus: 412, exitCode: 125, retryable: false },
  too_large: { httpStatus: 413, exitCode: 125, retryable: false },
  out_of_range: { httpStatus: 416, exitCode: 125, retryable: false },
  unsafe: { httpStatus: 422, exitCode: 125, retryable: false },
  busy: { httpStatus: 429, exitCode: 125, retryable: true },
  cancelled: { httpStatus: 499, exitCode: 130, retryable: false },
  internal: { httpStatus: 500, exitCode: 125, retryable: false },
  unsupported: { httpStatus: 501, exitCode: 125, retryable: false },
  protocol: { httpStatus: 502, exitCode: 125, retryable: false },
  unavailable: { httpStatus: 503, exitCode: 125, retryable: true },
  lost: { httpStatus: 503, exitCode: 125, retryable: false },
  timeout: { httpStatus: 504, exitCode: 125, retryable: true },
  no_space: { httpStatus: 507, exitCode: 125, retryable: false },
} as const;

export type ErrorCode = keyof typeof errorCodes;

interface CaissonErrorOptions {
  /** What to do next, as a sentence. */
  hint?: string;
  /** Facts for programs; never a secret. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/**
 * The only error class. The message is a fragment that says what failed and on what. It begins in lower case and has no
 * full stop, since it is printed after `caisson: ` and joined with other messages by colons. The hint says what to do
 * next.
 */
export class CaissonError extends Error {
  override readonly name = "CaissonError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: CaissonErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.details = options.details;
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }

  /** Message and hint as sentences, for a model or a program that reads both as one text. */
  get sentences(): string {
    return this.hint === undefined ? sentence(this.message) : `${sentence(this.message)} ${this.hint}`;
  }

  toJSON(): { code: ErrorCode; message: string; hint?: string; details?: Record<string, unknown>; retryable: boolean } {
    return {
      code: this.code,
      message: this.message,
      ...(this.hint === undefined ? {} : { hint: this.hint }),
      ...(this.details === undefined ? {} : { details: this.details }),
      retryable: this.retryable,
    };
  }
}
