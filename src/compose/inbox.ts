import type { createInbox } from "../station/inbox/create-inbox.ts";
import type { InboxVerbs } from "../station/inbox/verbs.ts";
import { lazyVerbs } from "./lazy-verbs.ts";

export function composeInbox(station: Parameters<typeof createInbox>[0]): InboxVerbs {
  return lazyVerbs<InboxVerbs>({ list: "answer" }, async () => (await import("../station/inbox/create-inbox.ts")).createInbox(station));
}
