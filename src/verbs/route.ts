import type { z } from "zod";
import type { AuditSubject } from "../contract/audit/audit-text.ts";
import type { Scope } from "../contract/token/token-verbs.ts";

/** The possible forms of an answer. A route with events besides JSON or bytes follows the caller's `Accept` header. */
interface AnswerParts {
  /** Default 200, or 204 for a route without an answer body. */
  status?: 200 | 201 | 202;
  json?: z.ZodType;
  /** The type of each server-sent event's data. */
  events?: z.ZodType;
  /** The media type of a byte stream. */
  bytes?: string;
  /** Whether byte ranges and `HEAD` are supported. */
  parts?: boolean;
}

/**
 * One call of the HTTP API: its input, its answer, and the scope it requires. Its path is declared in `RouteWithPath`.
 */
export interface Route {
  summary: string;
  /** The minimum scope of the token. `sandbox` accepts only a sandbox's token, `code` only a sign-in code. */
  scope: Scope | "sandbox" | "code";
  /** The path parameters. */
  params?: Readonly<Record<string, z.ZodType>>;
  query?: z.ZodObject;
  /** A JSON schema, or a byte stream. */
  body?: z.ZodType | "bytes";
  /** Whether the body may be omitted, which means an empty object. */
  bodyOptional?: boolean;
  /** Whether the answer contains something shown only once. Such an answer is not stored for repeated requests. */
  shownOnce?: boolean;
  /** Whether it must work while the disk fails. If so, it takes no idempotency key and does without the audit log. */
  worksWithoutDisk?: boolean;
  /** The maximum length of the body, if it differs from the server's default. */
  bodyBytesMax?: number;
  /**
   * Returns fragments that name what a body or query accesses on the station's machine (folders, commands, local
   * addresses). This requires a token with the scope `admin`.
   */
  reaches?(body: never, query: never): readonly string[];
  /** Returns the parts of a body that the audit log records besides the path: names, and addresses as origins. */
  audited?(body: never): AuditSubject;
  answer: AnswerParts;
}
