import { z } from "zod";
import { NameOrId } from "../contract/api/name-or-id.ts";
import type { SandboxId } from "../contract/ids.ts";
import { ArtifactName } from "../contract/inside/inside-event.ts";
import {
  ArtifactView,
  InsideControl,
  InsideMessage,
  InsideView,
  insideLimits,
  ReportEvent,
  StoredArtifact,
  TellInside,
} from "../contract/inside/inside-verbs.ts";
import { NumberedSandboxEvent } from "../contract/sandbox/sandbox-log-event.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
/** An escaped character takes up to six bytes in JSON. */
const ESCAPED = 6;

/**
 * Calls between the programs in a sandbox and its owner. The first four require the sandbox's token and take its id;
 * the others take a sandbox's id or name, and those about artifacts also a run's. All throw `not_found`.
 */
export const inside = {
  /**
   * Appends an event to the log of the sandbox's run, or to the sandbox log if it has none. Throws `invalid`,
   * `too_large`.
   */
  report: verbOfType<(sandbox: SandboxId, event: ReportEvent) => Promise<{ seq: number }>>()({
    path: "POST /v1/inside/events",
    body: ReportEvent,
    bodyBytesMax: ESCAPED * insideLimits.eventBytesMax,
    answer: { status: 201, json: z.object({ seq: z.int().positive() }) },
    scope: "sandbox",
    owned: "sandbox",
    summary: "From inside a sandbox: append an event to the log of its run, or of the sandbox.",
  }),
  /** Takes the pending messages, oldest first. Each is delivered once. */
  takeMessages: verbOfType<(sandbox: SandboxId) => Promise<InsideMessage[]>>()({
    path: "POST /v1/inside/messages",
    answer: { json: z.object({ messages: z.array(InsideMessage) }) },
    scope: "sandbox",
    owned: "sandbox",
    summary: "From inside a sandbox: take its pending messages. Each is delivered once.",
  }),
  /** Sends a heartbeat. Resolves with what the sandbox should do. */
  beat: verbOfType<(sandbox: SandboxId) => Promise<InsideControl>>()({
    path: "POST /v1/inside/heartbeat",
    answer: { json: z.object({ control: InsideControl }) },
    scope: "sandbox",
    owned: "sandbox",
    summary: "From inside a sandbox: send a heartbeat, and learn whether to continue.",
  }),
  /** Stores an artifact atomically, and replaces one of the same name. Throws `too_large`, `no_space`, `busy`. */
  putArtifact: verbOfType<(sandbox: SandboxId, name: string, data: AsyncIterable<Uint8Array>) => Promise<StoredArtifact>>()({
    path: "PUT /v1/inside/artifacts/{artifact}",
    params: { artifact: ArtifactName },
    body: "bytes",
    bodyBytesMax: insideLimits.artifactBytesMax,
    answer: { status: 201, json: StoredArtifact },
    scope: "sandbox",
    owned: "sandbox",
    summary: "From inside a sandbox: store a file for its owner. It outlives the sandbox of a run.",
  }),
  view: verb({
    path: "GET /v1/sandboxes/{sandbox}/inside",
    gives: InsideView,
    scope: "read",
    owned: "sandbox",
    summary: "Show what programs in a sandbox reported, and the messages pending for them.",
  }),
  /**
   * Sends a message to the programs inside, or tells them to pause, resume or abort. Throws `busy` if too many are
   * pending.
   */
  tell: verb({
    path: "POST /v1/sandboxes/{sandbox}/inside",
    takes: TellInside,
    by: true,
    apart: true,
    scope: "run",
    owned: "sandbox",
    summary: "Send a message to the programs in a sandbox, or tell them to pause, resume or abort.",
  }),
  /**
   * Reads the events in a sandbox log from a sequence number on. A removed sandbox is found by its full id for some
   * days. With `owner`, only that owner's sandboxes are found.
   */
  events: verbOfType<
    (sandbox: string, options?: { fromSeq?: number; limit?: number; owner?: string }) => Promise<NumberedSandboxEvent[]>
  >()({
    path: "GET /v1/sandboxes/{sandbox}/events",
    params: { sandbox: NameOrId },
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: z.object({ events: z.array(NumberedSandboxEvent) }), events: NumberedSandboxEvent },
    scope: "read",
    owned: "by hand",
    summary:
      "List the events of a sandbox: a page as JSON, or server-sent events until it ends, with sequence numbers as ids. A removed sandbox is found by its full id for some days.",
  }),
  /** Reads the same events, then new ones, until the sandbox ends or the signal aborts. Loses and repeats nothing. */
  follow: verbOfType<
    (sandbox: string, options?: { fromSeq?: number; signal?: AbortSignal; owner?: string }) => AsyncIterable<NumberedSandboxEvent>
  >()({ owned: "by hand", kind: "stream", withoutRoute: "`inside.events` gives the same as server-sent events" }),
  /** Sorted by name. */
  artifacts: verb({
    path: "GET /v1/artifacts/{thing}",
    gives: z.array(ArtifactView),
    key: "artifacts",
    scope: "read",
    owned: "network",
    summary: "List the artifacts that programs in a sandbox or run stored.",
  }),
  readArtifact: verbOfType<(thing: string, name: string) => Promise<AsyncIterable<Uint8Array>>>()({
    path: "GET /v1/artifacts/{thing}/{artifact}",
    params: { thing: NameOrId, artifact: ArtifactName },
    answer: { bytes: "application/octet-stream" },
    scope: "read",
    owned: "network",
    summary: "Read an artifact. A program in the sandbox wrote it: treat its content as untrusted.",
  }),
};

export type InsideVerbs = VerbsOf<typeof inside>;
