import { z } from "zod";
import { auditName } from "../audit-text.ts";
import { AuditList, ListAudit } from "../audit-verbs.ts";
import { SecretName, SecretView, SetSecret } from "../secret-verbs.ts";
import { CodeView, CreateCode, NewCode } from "../sign-in-code.ts";
import { CreateToken, NewToken, RotateToken, Scope, TokenView } from "../token-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

/** A station that runs. */
export const StationStatus = z.object({
  version: z.string(),
  /** Whoever knows another number is not understood. */
  protocol: z.int().positive(),
  pid: z.int().positive(),
  startedAt: z.iso.datetime(),
  /** Where it listens for those with a token. */
  url: z.string(),
  /** How many requests are under way, this one included; streams that are open among them. */
  requests: z.int().nonnegative(),
  /** Whether it is about to end, and takes no new work. */
  draining: z.boolean(),
  /** Runs that it drives, and those that wait in its queue. */
  runs: z.object({ atWork: z.int().nonnegative(), queued: z.int().nonnegative() }),
  /** How busy it is. Absent from older stations. */
  load: z
    .object({
      /** How late its event loop was at worst in the last moments. */
      loopDelayMs: z.number().nonnegative(),
      /** Requests that wait for their turn. */
      waiting: z.int().nonnegative(),
      /** The longest that a request waited in the last minute. */
      waitedMs: z.number().nonnegative(),
      /** Requests that were refused because of overload since the start, by class. */
      refused: z.record(z.enum(["vital", "control", "work", "list"]), z.int().nonnegative()),
    })
    .optional(),
  /** Present while its loop stands still, as when its disk does not answer: how long. All else is as it was before. */
  stalledMs: z.int().nonnegative().optional(),
  /** Who asks: whose the token is, and what it may do. Stations before did not say. */
  caller: z.object({ by: z.string(), owner: z.string(), scope: Scope.nullable() }).optional(),
});
export type StationStatus = z.infer<typeof StationStatus>;

const DRAIN_MS_MAX = 7 * 24 * 60 * 60_000;

/** How a station ends. */
export const ShutDown = z.strictObject({
  /** Whether the runs that it drives are waited for. */
  drain: z.boolean().default(false),
  /** How long; after that they are let go. Absent: as long as they take. */
  timeoutMs: z.int().positive().max(DRAIN_MS_MAX).optional(),
});
export type ShutDown = z.infer<typeof ShutDown>;

export const stationRoutes = {
  "station.status": { summary: "The station itself.", scope: "read", answer: { json: StationStatus } },
  "station.shutdown": {
    summary:
      "End the station. Requests under way have a few seconds; runs it drives are let go, and the next station goes on with them. With `drain` they are waited for first, and no new work is taken meanwhile.",
    scope: "admin",
    body: ShutDown,
    bodyOptional: true,
    worksWithoutDisk: true,
    answer: { status: 202, json: z.object({ pid: z.int().positive() }) },
  },
  "station.openapi": { summary: "This document.", scope: "read", answer: { json: z.record(z.string(), z.unknown()) } },
  "tokens.list": {
    summary: "List tokens; never the tokens themselves.",
    scope: "admin",
    answer: { json: z.object({ tokens: z.array(TokenView) }) },
  },
  "tokens.create": {
    summary: "Make a token. The answer is the only place where it is shown.",
    scope: "admin",
    body: CreateToken,
    shownOnce: true,
    audited: ({ name, scope, owner }: z.output<typeof CreateToken>) => ({
      name: auditName(name),
      scope: auditName(scope),
      owner: auditName(owner),
    }),
    answer: { status: 201, json: NewToken },
  },
  "tokens.rotate": {
    summary: "Give a token another secret, shown once. The one before is worth nothing, at once or after `graceMs`.",
    scope: "admin",
    params: { token: NameOrId },
    body: RotateToken,
    shownOnce: true,
    bodyOptional: true,
    answer: { json: NewToken },
  },
  "tokens.revoke": {
    summary: "Revoke a token, by id or name. Streams that were opened with it end within a second.",
    scope: "admin",
    params: { token: NameOrId },
    answer: { json: TokenView },
  },
  "codes.create": {
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
    summary: "Show the owner, name and scope of the token that a sign-in code would create. Send the code as the bearer token.",
    scope: "code",
    answer: { json: CodeView },
  },
  "codes.exchange": {
    summary: "Exchange a sign-in code, which is sent in place of a token, for its token. A code works once.",
    scope: "code",
    shownOnce: true,
    answer: { status: 201, json: NewToken },
  },
  "audit.list": {
    summary: "What was asked of the station: calls that change something, and those that were not let in; the newest first.",
    scope: "admin",
    query: ListAudit,
    answer: { json: AuditList },
  },
  "secrets.list": {
    summary: "List secrets that the station keeps: their names and where they may go, never what they are.",
    scope: "read",
    answer: { json: z.object({ secrets: z.array(SecretView) }) },
  },
  "secrets.set": {
    summary: "Keep a secret, or replace it. Runs and sandboxes use it by its name; its value never comes back.",
    scope: "run",
    params: { secret: SecretName },
    body: SetSecret,
    answer: { json: SecretView },
  },
  "secrets.remove": {
    summary: "Remove a secret. Within a minute it is injected nowhere.",
    scope: "run",
    params: { secret: SecretName },
    answer: {},
  },
} as const satisfies Record<string, Route>;
