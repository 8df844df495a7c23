import { z } from "zod";
import { EnvName } from "../ids.ts";
import { NetworkPolicy } from "../network.ts";
import { NetworkEvent, PortClosed, PortOpened } from "../network-event.ts";
import { KeptPreview, ListeningPort, NetworkChange, NetworkView, OpenPreview, PreviewId } from "../network-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfNetworkChange, reachOfPreview } from "./reach.ts";
import type { Route } from "./route.ts";

const NumberedNetworkEvent = NetworkEvent.and(z.object({ seq: z.int().positive() }));
const LOG_PAGE = 100;
const LOG_PAGE_MAX = 1000;

/** A sandbox, or a run that has one. */
const params = { sandbox: NameOrId };

export const networkRoutes = {
  "networks.show": { summary: "What a sandbox, or that of a run, may reach.", scope: "read", params, answer: { json: NetworkView } },
  "networks.change": {
    summary: "Allow a sandbox more, deny it some, or replace what it may reach. Holds at once, also for open connections.",
    scope: "run",
    params,
    body: NetworkChange.omit({ by: true }),
    reaches: reachOfNetworkChange,
    answer: { json: NetworkPolicy },
  },
  "networks.revoke": {
    summary: "Inject a secret nowhere any more for a sandbox.",
    scope: "run",
    params: { ...params, secret: EnvName },
    answer: {},
  },
  "networks.log": {
    summary:
      "What happened in a sandbox's network: a page as JSON, or all as server-sent events, then what is to come, whose ids are sequence numbers. The oldest of a long log are dropped.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().positive().optional(),
      limit: z.int().min(1).max(LOG_PAGE_MAX).default(LOG_PAGE),
    }),
    answer: {
      json: z.object({
        events: z.array(NumberedNetworkEvent),
        /** For `fromSeq` of the next page; null at the end of what there is. */
        next: z.int().positive().nullable(),
      }),
      events: NumberedNetworkEvent,
    },
  },
  "ports.list": {
    summary: "The ports on which something listens in a sandbox.",
    scope: "read",
    params,
    query: z.strictObject({
      /** Also each further address, and the ports that the host itself serves there. */
      all: z.boolean().optional(),
    }),
    answer: { json: z.object({ ports: z.array(ListeningPort) }) },
  },
  "ports.watch": {
    summary: "Each port of a sandbox that begins to listen, those that do already first, and each that stops.",
    scope: "read",
    params,
    answer: { events: z.discriminatedUnion("type", [PortOpened, PortClosed]) },
  },
  "previews.open": {
    summary: "Show an HTTP port of a sandbox to whoever has the URL, until it is closed or the sandbox or the station ends.",
    scope: "run",
    params,
    body: OpenPreview,
    reaches: reachOfPreview,
    answer: { status: 201, json: KeptPreview },
  },
  "previews.list": {
    summary: "List the previews that the station keeps open.",
    scope: "run",
    answer: { json: z.object({ previews: z.array(KeptPreview) }) },
  },
  "previews.close": { summary: "Close a preview.", scope: "run", params: { preview: PreviewId }, answer: {} },
} as const satisfies Record<string, Route>;
