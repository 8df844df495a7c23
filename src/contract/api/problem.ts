import { z } from "zod";
import { type CaissonError, type ErrorCode, errorCodes } from "../error/error.ts";

/** The answer to a failed call: an RFC 9457 problem with one of our error codes. */
export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
  /** What to do next, as a sentence. */
  hint: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
  /** Whether the same call may succeed later without any intervention. */
  retryable: z.boolean(),
});
export type Problem = z.infer<typeof Problem>;

export function problemOf(error: CaissonError): Problem {
  const { code, message, hint, details, retryable } = error.toJSON();
  return {
    type: `urn:caisson:problem:${code}`,
    title: code.replaceAll("_", " "),
    status: errorCodes[code].httpStatus,
    detail: message,
    code,
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
    retryable,
  };
}
