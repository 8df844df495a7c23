import { CaissonError } from "../contract/error/error.ts";
import { withoutTrailingSlashes } from "../contract/trailing-slashes.ts";
import type { BodyInput, Json } from "../verbs/routes.ts";
import { fileCalls } from "./calls/file-calls.ts";
import { insideCalls } from "./calls/inside-calls.ts";
import { bestCalls, mergeCalls, workflowCalls } from "./calls/job-calls.ts";
import { networkCalls } from "./calls/network-calls.ts";
import { processCalls } from "./calls/process-calls.ts";
import { runCalls } from "./calls/run-calls.ts";
import { sandboxCalls } from "./calls/sandbox-calls.ts";
import { sessionCalls } from "./calls/session-calls.ts";
import { uploadCalls } from "./calls/upload-calls.ts";
import { type DerivedCalls, derivedCalls } from "./derived-calls.ts";
import { type Connection, call, type Fetch, type Signal } from "./request.ts";
import { type StreamCalls, streamCalls } from "./stream-calls.ts";
import { type OpenSocket, openGlobalSocket } from "./stream-socket.ts";

/**
 * The client of a station, for browsers and Node: the station's verbs over HTTP, with the same arguments and answers.
 * It has no dependencies.
 */

export { CaissonError, type ErrorCode } from "../contract/error/error.ts";
export type { RunEvent } from "../contract/run/run-event.ts";
export type { ListRuns, RunView, StartRunInput } from "../contract/run/run-verbs.ts";
export type { SandboxConfigInput, SandboxInfo } from "../contract/sandbox/sandbox.ts";
export type { Fetch } from "./request.ts";
export type { OpenSocket } from "./stream-socket.ts";

export interface ConnectOptions {
  /** The station's address, such as `http://127.0.0.1:7433`. */
  url: string;
  token?: string;
  /** Custom function for requests; default the global `fetch`. */
  fetch?: Fetch;
  /** Custom function to open WebSockets; default the global `WebSocket`. */
  openSocket?: OpenSocket;
  /** Abort this when you want to exit: the client then gives up an unresponsive station sooner. */
  leaving?: AbortSignal;
  /** How long the client waits for an answer before it checks the station's health; default ten seconds. */
  silenceMs?: number;
}

/** Creates a client. Throws `invalid` for an invalid address. No request is made before the first call. */
export function connect(options: ConnectOptions): Client {
  const to: Connection = {
    url: checkedUrl(options.url),
    token: options.token,
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    openSocket: options.openSocket ?? openGlobalSocket,
    leaving: options.leaving,
    silenceMs: options.silenceMs,
  };
  return {
    status: (options = {}) => call(to, "station.status", options),
    shutDown: (body = {}, options = {}) => call(to, "station.shutdown", { body, ...options }),
    codes: {
      create: (body = {}, options = {}) => call(to, "codes.create", { body, ...options }),
      view: (options = {}) => call(to, "codes.view", options),
      exchange: (options = {}) => call(to, "codes.exchange", options),
    },
    tokens: derivedCalls(to, "tokens"),
    audit: derivedCalls(to, "audit"),
    secrets: derivedCalls(to, "secrets"),
    machine: derivedCalls(to, "machine"),
    images: derivedCalls(to, "images"),
    templates: derivedCalls(to, "templates"),
    agents: derivedCalls(to, "agents"),
    webhooks: {
      ...derivedCalls(to, "webhooks"),
      create: (body: BodyInput<"webhooks.create">, options: Signal = {}) => call(to, "webhooks.create", { body, ...options }),
    },
    ships: derivedCalls(to, "ships"),
    specs: derivedCalls(to, "specs"),
    workflows: workflowCalls(to),
    merges: mergeCalls(to),
    bests: bestCalls(to),
    sandboxes: sandboxCalls(to),
    processes: processCalls(to),
    files: fileCalls(to),
    networks: networkCalls(to),
    runs: runCalls(to),
    sessions: sessionCalls(to),
    uploads: uploadCalls(to),
    streams: streamCalls(to),
    health: derivedCalls(to, "health"),
    guardian: derivedCalls(to, "guardian"),
    inbox: derivedCalls(to, "inbox"),
    inside: insideCalls(to),
  };
}

export interface Client {
  status(options?: Signal): Promise<Json<"station.status">>;
  shutDown(request?: BodyInput<"station.shutdown">, options?: Signal): Promise<Json<"station.shutdown">>;
  /** `view` and `exchange` are for a client with a sign-in code instead of a token. */
  readonly codes: {
    create(request?: BodyInput<"codes.create">, options?: Signal): Promise<Json<"codes.create">>;
    view(options?: Signal): Promise<Json<"codes.view">>;
    exchange(options?: Signal): Promise<Json<"codes.exchange">>;
  };
  readonly tokens: DerivedCalls<"tokens">;
  readonly audit: DerivedCalls<"audit">;
  readonly secrets: DerivedCalls<"secrets">;
  readonly machine: DerivedCalls<"machine">;
  readonly images: DerivedCalls<"images">;
  readonly templates: DerivedCalls<"templates">;
  readonly agents: DerivedCalls<"agents">;
  readonly webhooks: DerivedCalls<"webhooks"> & {
    create(request: BodyInput<"webhooks.create">, options?: Signal): Promise<Json<"webhooks.create">>;
  };
  readonly ships: DerivedCalls<"ships">;
  readonly specs: DerivedCalls<"specs">;
  readonly health: DerivedCalls<"health">;
  readonly guardian: DerivedCalls<"guardian">;
  readonly inbox: DerivedCalls<"inbox">;
  readonly inside: ReturnType<typeof insideCalls>;
  readonly merges: ReturnType<typeof mergeCalls>;
  readonly bests: ReturnType<typeof bestCalls>;
  readonly workflows: ReturnType<typeof workflowCalls>;
  readonly sandboxes: ReturnType<typeof sandboxCalls>;
  readonly processes: ReturnType<typeof processCalls>;
  readonly networks: ReturnType<typeof networkCalls>;
  readonly files: ReturnType<typeof fileCalls>;
  readonly runs: ReturnType<typeof runCalls>;
  readonly sessions: ReturnType<typeof sessionCalls>;
  readonly uploads: ReturnType<typeof uploadCalls>;
  readonly streams: StreamCalls;
}

function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new CaissonError("invalid", `${JSON.stringify(text)} is not an address`, {
      hint: "Use an address such as http://127.0.0.1:7433.",
    });
  }
  return withoutTrailingSlashes(text);
}
