import { z } from "zod";
import type { Scope } from "../token/token-verbs.ts";
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

/** A WebSocket of the API: its messages, and who may open it. Its path is in `stream-paths.ts`. */
export interface StreamRoute {
  summary: string;
  /** The minimum scope of the token. */
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
    summary: "Stream the events of runs and sandboxes, with a filter that can be changed.",
    scope: "read",
    params: {},
    query: none,
    fromClient: EventsClientMessage,
    fromServer: EventsServerMessage,
  },
  "sandboxes.createHeld": {
    summary: "Create a sandbox, and hold it while the socket is open.",
    scope: "run",
    params: {},
    query: none,
    fromClient: HoldClientMessage,
    fromServer: HoldServerMessage,
  },
  "sandboxes.hold": {
    summary: "Hold a sandbox while the socket is open.",
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
    summary: "Open a TCP connection to a port on a sandbox's loopback.",
    scope: "run",
    params: { ...params, port: PortParam },
    query: PortQuery,
    fromClient: PortClientMessage,
    fromServer: PortServerMessage,
  },
} as const satisfies Record<StreamName, StreamRoute>;
