import type { z } from "zod";
import type { AuditSubject } from "../audit-text.ts";
import type { Scope } from "../token-verbs.ts";

/**
 * What an answer can be made of; a route that has events besides JSON or bytes gives what the caller's `Accept` asks
 * for.
 */
interface AnswerParts {
  /** Default 200; 204 for a route that gives nothing. */
  status?: 200 | 201 | 202;
  json?: z.ZodType;
  /** Server-sent events, each with this as its data. */
  events?: z.ZodType;
  /** A stream of bytes, of this media type. */
  bytes?: string;
  /** Whether parts of them can be asked for, and what they are without them (`HEAD`). */
  parts?: boolean;
}

/** One call of the HTTP API: what it takes, what it gives, and who may make it. Its path is in `paths.ts`. */
export interface Route {
  summary: string;
  /** The least that a token must have; `sandbox`: only a sandbox's own will do; `code`: only a sign-in code will. */
  scope: Scope | "sandbox" | "code";
  /** What stands in the path's braces. */
  params?: Readonly<Record<string, z.ZodType>>;
  query?: z.ZodObject;
  /** JSON of this shape, or a stream of bytes. */
  body?: z.ZodType | "bytes";
  /** Whether the body may be left out, which is the same as an empty object. */
  bodyOptional?: boolean;
  /** Whether its answer has something that is shown this once: it is not kept for whoever asks again. */
  shownOnce?: boolean;
  /** Whether it must work while the disk fails: it takes no idempotency key, and does without the audit log. */
  worksWithoutDisk?: boolean;
  /** How long the body may be, where that is not what the server has for all. */
  bodyBytesMax?: number;
  /**
   * What of the station's machine a body or a query names (its folders, its commands, its own addresses), each as a
   * fragment: for that a token needs the scope `admin`.
   */
  reaches?(body: never, query: never): readonly string[];
  /** What of a body the audit log keeps besides the path: names, and addresses as origins. */
  audited?(body: never): AuditSubject;
  answer: AnswerParts;
}
