import { z } from "zod";
import { ArtifactName } from "../inside-event.ts";
import {
  ArtifactView,
  InsideControl,
  InsideMessage,
  InsideView,
  insideLimits,
  NumberedSandboxEvent,
  ReportEvent,
  StoredArtifact,
  TellInside,
} from "../inside-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
/** JSON of what fits may be longer than that, escaped. */
const ESCAPED = 6;

export const insideRoutes = {
  "inside.report": {
    summary: "From inside a sandbox: put an event into the log of its run, or its own.",
    scope: "sandbox",
    body: ReportEvent,
    bodyBytesMax: ESCAPED * insideLimits.eventBytesMax,
    answer: { status: 201, json: z.object({ seq: z.int().positive() }) },
  },
  "inside.takeMessages": {
    summary: "From inside a sandbox: take the messages that wait for it. Each is given once.",
    scope: "sandbox",
    answer: { json: z.object({ messages: z.array(InsideMessage) }) },
  },
  "inside.beat": {
    summary: "From inside a sandbox: say that its work goes on, and hear whether it shall.",
    scope: "sandbox",
    answer: { json: z.object({ control: InsideControl }) },
  },
  "inside.putArtifact": {
    summary: "From inside a sandbox: leave a file for its owner. It outlives the sandbox of a run.",
    scope: "sandbox",
    params: { artifact: ArtifactName },
    body: "bytes",
    bodyBytesMax: insideLimits.artifactBytesMax,
    answer: { status: 201, json: StoredArtifact },
  },
  "inside.view": {
    summary: "What was heard from inside a sandbox, and what waits for it.",
    scope: "read",
    params: { sandbox: NameOrId },
    answer: { json: InsideView },
  },
  "inside.tell": {
    summary: "Leave a message for the programs in a sandbox, or tell them to pause, resume or abort.",
    scope: "run",
    params: { sandbox: NameOrId },
    body: TellInside,
    answer: {},
  },
  "inside.events": {
    summary:
      "The events of a sandbox: a page as JSON, or all as server-sent events until the sandbox ends, whose ids are sequence numbers. Of one that is gone, by its id, for some days.",
    scope: "read",
    params: { sandbox: NameOrId },
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: z.object({ events: z.array(NumberedSandboxEvent) }), events: NumberedSandboxEvent },
  },
  "inside.artifacts": {
    summary: "List the files that programs inside left, of a sandbox or a run.",
    scope: "read",
    params: { thing: NameOrId },
    answer: { json: z.object({ artifacts: z.array(ArtifactView) }) },
  },
  "inside.readArtifact": {
    summary: "Read one of them. What is in it comes from inside, and nobody vouches for it.",
    scope: "read",
    params: { thing: NameOrId, artifact: ArtifactName },
    answer: { bytes: "application/octet-stream" },
  },
} as const satisfies Record<string, Route>;
