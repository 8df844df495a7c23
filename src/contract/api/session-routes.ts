import { z } from "zod";
import {
  AppliedSession,
  ApplySession,
  BranchedSession,
  BranchSession,
  DiscardSession,
  SessionDetails,
  SessionDiff,
  SessionView,
} from "../session-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

/** By a session's own id or by that of a run in it. */
const params = { session: NameOrId };
const paths = z.array(z.string().min(1).max(4096)).max(1000).optional();

export const sessionRoutes = {
  "sessions.list": {
    summary: "List sessions, the last used first.",
    scope: "read",
    answer: { json: z.object({ sessions: z.array(SessionView) }) },
  },
  "sessions.get": { summary: "One session, with its history.", scope: "read", params, answer: { json: SessionDetails } },
  "sessions.diff": {
    summary: "Which files a session's runs changed.",
    scope: "read",
    params,
    query: z.strictObject({ paths, includeIgnored: z.boolean().optional() }),
    answer: { json: SessionDiff },
  },
  "sessions.patch": {
    summary: "The changes themselves, as git writes them.",
    scope: "read",
    params,
    query: z.strictObject({ paths, includeIgnored: z.boolean().optional(), brief: z.boolean().optional() }),
    answer: { bytes: "text/x-diff" },
  },
  "sessions.apply": {
    summary: "Bring a session's changes to a folder of the station's machine.",
    scope: "admin",
    params,
    body: ApplySession,
    bodyOptional: true,
    answer: { json: AppliedSession },
  },
  "sessions.branch": {
    summary: "Commit a session's changes on a new branch of a repository of the station's machine.",
    scope: "admin",
    params,
    body: BranchSession,
    bodyOptional: true,
    answer: { json: BranchedSession },
  },
  "sessions.unlock": {
    summary: "Take a session's lock away from a holder that died; with `force`, from any.",
    scope: "run",
    params,
    body: z.strictObject({ force: z.boolean().default(false) }),
    bodyOptional: true,
    answer: {},
  },
  "sessions.discard": {
    summary: "Remove a session with everything it kept.",
    scope: "run",
    params,
    query: DiscardSession.pick({ force: true }),
    answer: {},
  },
} as const satisfies Record<string, Route>;
