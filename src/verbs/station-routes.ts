import { z } from "zod";
import { auditName } from "../contract/audit/audit-text.ts";
import { CodeView, CreateCode, NewCode } from "../contract/token/sign-in-code.ts";
import { NewToken, Scope } from "../contract/token/token-verbs.ts";
import type { Route } from "./route.ts";
import type { Path } from "./verb.ts";

/** The status of a running station. */
export const StationStatus = z.object({
  version: z.string(),
  /** The protocol number. Clients with another number are not supported. */
  protocol: z.int().positive(),
  pid: z.int().positive(),
  startedAt: z.iso.datetime(),
  /** The URL for clients with a token. */
  url: z.string(),
  /** The number of requests in progress, including this one and open streams. */
  requests: z.int().nonnegative(),
  /** Whether it is about to end and accepts no new work. */
  draining: z.boolean(),
  /** The numbers of runs that it drives and that wait in its queue. */
  runs: z.object({ atWork: z.int().nonnegative(), queued: z.int().nonnegative() }),
  /** The load. Absent from older stations. */
  load: z
    .object({
      /** The worst recent delay of its event loop. */
      loopDelayMs: z.number().nonnegative(),
      /** Requests that wait for their turn. */
      waiting: z.int().nonnegative(),
      /** The longest wait of a request in the last minute. */
      waitedMs: z.number().nonnegative(),
      /** Requests refused because of overload since the start, by class. */
      refused: z.record(z.enum(["vital", "control", "work", "list"]), z.int().nonnegative()),
    })
    .optional(),
  /**
   * How long its event loop has been blocked, as when its disk does not answer. Present only then; the other fields
   * date from before.
   */
  stalledMs: z.int().nonnegative().optional(),
  /** The caller: the owner and scope of its token. Absent from older stations. */
  caller: z.object({ by: z.string(), owner: z.string(), scope: Scope.nullable() }).optional(),
});
export type StationStatus = z.infer<typeof StationStatus>;

const DRAIN_MS_MAX = 7 * 24 * 60 * 60_000;

/** How to end a station. */
export const ShutDown = z.strictObject({
  /** Whether to wait for the runs that it drives. */
  drain: z.boolean().default(false),
  /** The longest to wait before it releases the runs. Default: no limit. */
  timeoutMs: z.int().positive().max(DRAIN_MS_MAX).optional(),
});
export type ShutDown = z.infer<typeof ShutDown>;

export const stationRoutes = {
  "station.status": {
    path: "GET /v1/status",
    summary: "Get the status of the station.",
    scope: "read",
    answer: { json: StationStatus },
  },
  "station.shutdown": {
    path: "POST /v1/shutdown",
    summary:
      "Stop the station. Requests in progress get a few seconds. It releases the runs it drives, and the next station continues them. With `drain` it accepts no new work and waits for the runs first.",
    scope: "admin",
    body: ShutDown,
    bodyOptional: true,
    worksWithoutDisk: true,
    answer: { status: 202, json: z.object({ pid: z.int().positive() }) },
  },
  "station.openapi": {
    path: "GET /v1/openapi.json",
    summary: "This document.",
    scope: "read",
    answer: { json: z.record(z.string(), z.unknown()) },
  },
  "codes.create": {
    path: "POST /v1/codes",
    summary: "Register a code that signs a browser in, once and within a minute. Its token is created when it is exchanged.",
    scope: "admin",
    body: CreateCode,
    bodyOptional: true,
    shownOnce: true,
    audited: ({ scope, owner }: z.output<typeof CreateCode>) => ({
      scope: auditName(scope),
      ...(owner !== undefined && { owner: auditName(owner) }),
    }),
    answer: { status: 201, json: NewCode },
  },
  "codes.view": {
    path: "GET /v1/codes/current",
    summary: "Show the owner, name and scope of the token that a sign-in code would create. Send the code as the bearer token.",
    scope: "code",
    answer: { json: CodeView },
  },
  "codes.exchange": {
    path: "POST /v1/codes/exchange",
    summary: "Exchange a sign-in code, sent as the bearer token, for its token. A code works once.",
    scope: "code",
    shownOnce: true,
    answer: { status: 201, json: NewToken },
  },
} as const satisfies Record<string, Route & { path: Path }>;
