import { z } from "zod";
import type { Scope } from "../token-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import type { StreamName } from "./stream-paths.ts";
import {
  EventsClientMessage,
  EventsServerMessage,
  HoldClientMessage,
  HoldServerMessage,
  PortClientMessage,
  PortParam,
  PortQuery,
  PortServerMessage,
  ProcessClientMessage,
  ProcessServerMessage,
} from "./streams.ts";

/** One WebSocket of the API: what is said over it, and who may open it. Its path is in `stream-paths.ts`. */
export interface StreamRoute {
  summary: string;
  /** The least that a token must have. */
  scope: Scope;
  params: Readonly<Record<string, z.ZodType>>;
  query: z.ZodObject;
  fromClient: z.ZodType;
  fromServer: z.ZodType;
}

const none = z.strictObject({});
const params = { sandbox: NameOrId };

export const streamRoutes = {
  "events.stream": {
    summary: "The events of runs and sandboxes as they happen, with a filter that can be changed.",
    scope: "read",
    params: {},
    query: none,
    fromClient: EventsClientMessage,
    fromServer: EventsServerMessage,
  },
  "sandboxes.createHeld": {
    summary: "Make a sandbox, and hold it as long as the socket is open.",
    scope: "run",
    params: {},
    query: none,
    fromClient: HoldClientMessage,
    fromServer: HoldServerMessage,
  },
  "sandboxes.hold": {
    summary: "Hold a sandbox as long as the socket is open.",
    scope: "run",
    params,
    query: none,
    fromClient: HoldClientMessage,
    fromServer: HoldServerMessage,
  },
  "processes.stream": {
    summary: "Start a process or attach to one: its input, output and signals.",
    scope: "run",
    params,
    query: none,
    fromClient: ProcessClientMessage,
    fromServer: ProcessServerMessage,
  },
  "ports.connect": {
    summary: "A TCP connection to a port on a sandbox's loopback.",
    scope: "run",
    params: { ...params, port: PortParam },
    query: PortQuery,
    fromClient: PortClientMessage,
    fromServer: PortServerMessage,
  },
} as const satisfies Record<StreamName, StreamRoute>;
