import { mergeEvents } from "../../contract/merge/merge-event.ts";

export const mergeKindFacts = {
  name: "merge",
  prefix: "merge/",
  idPrefix: "mrg",
  listedBy: "caisson merge ls",
  events: mergeEvents,
} as const;
