import { bestEvents } from "../../contract/best/best-event.ts";

export const bestKindFacts = {
  name: "best",
  prefix: "best/",
  idPrefix: "best",
  listedBy: "caisson best ls",
  events: bestEvents,
} as const;
