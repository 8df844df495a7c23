import type { BodyInput, Json, QueryInput } from "../contract/api/routes.ts";
import { CaissonError } from "../contract/error.ts";
import { withoutTrailingSlashes } from "../contract/trailing-slashes.ts";
import { fileCalls } from "./calls/file-calls.ts";
import { guardianCalls } from "./calls/guardian-calls.ts";
import { healthCalls } from "./calls/health-calls.ts";
import { inboxCalls } from "./calls/inbox-calls.ts";
import { insideCalls } from "./calls/inside-calls.ts";
import { agentCalls, imageCalls, machineCalls } from "./calls/machine-calls.ts";
import { mergeCalls } from "./calls/merge-calls.ts";
import { networkCalls } from "./calls/network-calls.ts";
import { processCalls } from "./calls/process-calls.ts";
import { runCalls } from "./calls/run-calls.ts";
import { sandboxCalls } from "./calls/sandbox-calls.ts";
import { secretCalls } from "./calls/secret-calls.ts";
import { sessionCalls } from "./calls/session-calls.ts";
import { shipCalls } from "./calls/ship-calls.ts";
import { specCalls } from "./calls/spec-calls.ts";
import { uploadCalls } from "./calls/upload-calls.ts";
import { webhookCalls } from "./calls/webhook-calls.ts";
import { workflowCalls } from "./calls/workflow-calls.ts";
import { type Connection, call, type Fetch, type Signal } from "./request.ts";
import { type StreamCalls, streamCalls } from "./stream-calls.ts";
import { type OpenSocket, openGlobalSocket } from "./stream-socket.ts";

/**
 * The client of a station, for browsers and Node: the station's verbs over HTTP, with the same arguments and answers.
 * It loads nothing but itself.
 */

export { CaissonError, type ErrorCode } from "../contract/error.ts";
export type { RunEvent } from "../contract/run-event.ts";
export type { ListRuns, RunView, StartRunInput } from "../contract/run-verbs.ts";
export type { SandboxInfo, SandboxSpecInput } from "../contract/sandbox.ts";
export type { Fetch } from "./request.ts";
export type { OpenSocket } from "./stream-socket.ts";

export interface ConnectOptions {
  /** Such as `http://127.0.0.1:7433`. */
  url: string;
  token?: string;
  /** Another way to make requests; default the global `fetch`. */
  fetch?: Fetch;
  /** Another way to open WebSockets; default the global `WebSocket`. */
  openSocket?: OpenSocket;
  /** Aborted when you want to leave: a station that does not answer is given up sooner. */
  leaving?: AbortSignal;
  /** After how long without an answer the station is asked for a sign of life; default ten seconds. */
  silenceMs?: number;
}

/** Throws `invalid` for an address that is none. Nothing is asked for before the first call. */
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
    status: (given = {}) => call(to, "station.status", given),
    shutDown: (body = {}, given = {}) => call(to, "station.shutdown", { body, ...given }),
    tokens: {
      create: (body, given = {}) => call(to, "tokens.create", { body, ...given }),
      list: async (given = {}) => (await call(to, "tokens.list", given)).tokens,
      rotate: (token, body = {}, given = {}) => call(to, "tokens.rotate", { params: { token }, body, ...given }),
      revoke: (token, given = {}) => call(to, "tokens.revoke", { params: { token }, ...given }),
    },
    codes: {
      create: (body = {}, given = {}) => call(to, "codes.create", { body, ...given }),
      view: (given = {}) => call(to, "codes.view", given),
      exchange: (given = {}) => call(to, "codes.exchange", given),
    },
    audit: { list: (query = {}, given = {}) => call(to, "audit.list", { query, ...given }) },
    secrets: secretCalls(to),
    machine: machineCalls(to),
    images: imageCalls(to),
    agents: agentCalls(to),
    webhooks: webhookCalls(to),
    ships: shipCalls(to),
    workflows: workflowCalls(to),
    sandboxes: sandboxCalls(to),
    processes: processCalls(to),
    files: fileCalls(to),
    networks: networkCalls(to),
    runs: runCalls(to),
    sessions: sessionCalls(to),
    specs: specCalls(to),
    uploads: uploadCalls(to),
    streams: streamCalls(to),
    health: healthCalls(to),
    guardian: guardianCalls(to),
    inbox: inboxCalls(to),
    inside: insideCalls(to),
    merges: mergeCalls(to),
  };
}

export interface Client {
  status(given?: Signal): Promise<Json<"station.status">>;
  shutDown(request?: BodyInput<"station.shutdown">, given?: Signal): Promise<Json<"station.shutdown">>;
  readonly tokens: {
    create(request: BodyInput<"tokens.create">, given?: Signal): Promise<Json<"tokens.create">>;
    list(given?: Signal): Promise<Json<"tokens.list">["tokens"]>;
    rotate(token: string, request?: BodyInput<"tokens.rotate">, given?: Signal): Promise<Json<"tokens.rotate">>;
    revoke(token: string, given?: Signal): Promise<Json<"tokens.revoke">>;
  };
  /** `view` and `exchange` are for a client that was given a sign-in code in place of a token. */
  readonly codes: {
    create(request?: BodyInput<"codes.create">, given?: Signal): Promise<Json<"codes.create">>;
    view(given?: Signal): Promise<Json<"codes.view">>;
    exchange(given?: Signal): Promise<Json<"codes.exchange">>;
  };
  readonly audit: { list(query?: QueryInput<"audit.list">, given?: Signal): Promise<Json<"audit.list">> };
  readonly merges: ReturnType<typeof mergeCalls>;
  readonly secrets: ReturnType<typeof secretCalls>;
  readonly machine: ReturnType<typeof machineCalls>;
  readonly health: ReturnType<typeof healthCalls>;
  readonly guardian: ReturnType<typeof guardianCalls>;
  readonly inbox: ReturnType<typeof inboxCalls>;
  readonly inside: ReturnType<typeof insideCalls>;
  readonly images: ReturnType<typeof imageCalls>;
  readonly agents: ReturnType<typeof agentCalls>;
  readonly webhooks: ReturnType<typeof webhookCalls>;
  readonly ships: ReturnType<typeof shipCalls>;
  readonly workflows: ReturnType<typeof workflowCalls>;
  readonly sandboxes: ReturnType<typeof sandboxCalls>;
  readonly processes: ReturnType<typeof processCalls>;
  readonly networks: ReturnType<typeof networkCalls>;
  readonly files: ReturnType<typeof fileCalls>;
  readonly runs: ReturnType<typeof runCalls>;
  readonly sessions: ReturnType<typeof sessionCalls>;
  readonly specs: ReturnType<typeof specCalls>;
  readonly uploads: ReturnType<typeof uploadCalls>;
  readonly streams: StreamCalls;
}

function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new CaissonError("invalid", `${JSON.stringify(text)} is not an address`, {
      hint: "An address looks like http://127.0.0.1:7433.",
    });
  }
  return withoutTrailingSlashes(text);
}
