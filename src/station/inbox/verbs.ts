import type { Inbox } from "../../contract/inbox-verbs.ts";

export interface InboxVerbs {
  /** Everything that waits for a person, the newest first. It is answered by the verbs of its kind. */
  list(): Promise<Inbox>;
}
