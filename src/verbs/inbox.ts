import { Inbox } from "../contract/inbox/inbox-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

export const inbox = {
  /** Lists everything that waits for a person, newest first. Items are answered with the verbs of their kind. */
  list: verb({
    path: "GET /v1/inbox",
    gives: Inbox,
    scope: "read",
    owned: "by hand",
    summary: "List what waits for a person: run questions, workflow approvals, spec gates, merge conflicts and ships.",
  }),
};

export type InboxVerbs = VerbsOf<typeof inbox>;
