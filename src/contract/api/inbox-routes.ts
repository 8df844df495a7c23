import { Inbox } from "../inbox-verbs.ts";
import type { Route } from "./route.ts";

export const inboxRoutes = {
  "inbox.list": {
    summary: "What waits for a person: questions of runs, approvals of workflows, gates of specs, conflicts of merges, and ships.",
    scope: "read",
    answer: { json: Inbox },
  },
} as const satisfies Record<string, Route>;
