import type { BodyInput, EventData, Json, QueryInput } from "../contract/api/routes.ts";
import { CaissonError } from "../contract/error.ts";
import { eventData } from "./event-stream.ts";
import { type Connection, call, type Fetch, send } from "./request.ts";
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
}

interface Signal {
  signal?: AbortSignal;
}

/** Throws `invalid` for an address that is none. Nothing is asked for before the first call. */
export function connect(options: ConnectOptions): Client {
  const to: Connection = {
    url: checkedUrl(options.url),
    token: options.token,
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    openSocket: options.openSocket ?? openGlobalSocket,
  };
  return {
    status: (given = {}) => call(to, "station.status", given),
    shutDown: (given = {}) => call(to, "station.shutdown", given),
    tokens: {
      create: (body, given = {}) => call(to, "tokens.create", { body, ...given }),
      list: async (given = {}) => (await call(to, "tokens.list", given)).tokens,
      rotate: (token, body = {}, given = {}) => call(to, "tokens.rotate", { params: { token }, body, ...given }),
      revoke: (token, given = {}) => call(to, "tokens.revoke", { params: { token }, ...given }),
    },
    machine: { doctor: (query = {}, given = {}) => call(to, "machine.doctor", { query, ...given }) },
    agents: { list: async (given = {}) => (await call(to, "agents.list", given)).agents },
    sandboxes: sandboxCalls(to),
    files: fileCalls(to),
    runs: runCalls(to),
    sessions: sessionCalls(to),
    streams: streamCalls(to),
  };
}

export interface Client {
  status(given?: Signal): Promise<Json<"station.status">>;
  shutDown(given?: Signal): Promise<Json<"station.shutdown">>;
  readonly tokens: {
    create(request: BodyInput<"tokens.create">, given?: Signal): Promise<Json<"tokens.create">>;
    list(given?: Signal): Promise<Json<"tokens.list">["tokens"]>;
    rotate(token: string, request?: BodyInput<"tokens.rotate">, given?: Signal): Promise<Json<"tokens.rotate">>;
    revoke(token: string, given?: Signal): Promise<undefined>;
  };
  readonly machine: { doctor(query?: QueryInput<"machine.doctor">, given?: Signal): Promise<Json<"machine.doctor">> };
  readonly agents: { list(given?: Signal): Promise<Json<"agents.list">["agents"]> };
  readonly sandboxes: ReturnType<typeof sandboxCalls>;
  readonly files: ReturnType<typeof fileCalls>;
  readonly runs: ReturnType<typeof runCalls>;
  readonly sessions: ReturnType<typeof sessionCalls>;
  readonly streams: StreamCalls;
}

function sandboxCalls(to: Connection) {
  return {
    create: (body: BodyInput<"sandboxes.create"> = {}, given: Signal = {}) => call(to, "sandboxes.create", { body, ...given }),
    list: (given: Signal = {}) => call(to, "sandboxes.list", given),
    get: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.get", { params: { sandbox }, ...given }),
    remove: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.remove", { params: { sandbox }, ...given }),
    stats: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.stats", { params: { sandbox }, ...given }),
    pause: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.pause", { params: { sandbox }, ...given }),
    resume: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.resume", { params: { sandbox }, ...given }),
    fork: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.fork", { params: { sandbox }, ...given }),
    snapshot: (sandbox: string, body: BodyInput<"sandboxes.snapshot"> = {}, given: Signal = {}) =>
      call(to, "sandboxes.snapshot", { params: { sandbox }, body, ...given }),
    snapshots: async (given: Signal = {}) => (await call(to, "snapshots.list", given)).snapshots,
    removeSnapshot: (snapshot: string, given: Signal = {}) => call(to, "snapshots.remove", { params: { snapshot }, ...given }),
    /** Runs a command and gives its whole output. The signal ends it. */
    exec: (sandbox: string, body: BodyInput<"sandboxes.exec">, given: Signal = {}) =>
      call(to, "sandboxes.exec", { params: { sandbox }, body, ...given }),
    /** The same while it runs. Not taken up again: a command whose caller has gone away is ended. */
    execEvents: (sandbox: string, body: BodyInput<"sandboxes.exec">, given: Signal = {}) =>
      eventData<EventData<"sandboxes.exec">>(to, "sandboxes.exec", { input: { params: { sandbox }, body, ...given }, resume: false }),
  };
}

function fileCalls(to: Connection) {
  return {
    list: (sandbox: string, query: QueryInput<"files.list">, given: Signal = {}) =>
      call(to, "files.list", { params: { sandbox }, query, ...given }),
    remove: (sandbox: string, query: QueryInput<"files.remove">, given: Signal = {}) =>
      call(to, "files.remove", { params: { sandbox }, query, ...given }),
    /** A stream: what is not read is not sent. */
    async read(sandbox: string, query: QueryInput<"files.read">, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "files.read", { input: { params: { sandbox }, query, ...given }, accept: "*/*" }));
    },
    write: (sandbox: string, query: QueryInput<"files.write">, body: BodyInput<"files.write">, given: Signal = {}) =>
      call(to, "files.write", { params: { sandbox }, query, body, ...given }),
  };
}

function runCalls(to: Connection) {
  return {
    start: (body: BodyInput<"runs.start">, given: Signal = {}) => call(to, "runs.start", { body, ...given }),
    get: (run: string, given: Signal = {}) => call(to, "runs.get", { params: { run }, ...given }),
    list: (query: QueryInput<"runs.list"> = {}, given: Signal = {}) => call(to, "runs.list", { query, ...given }),
    /**
     * The events from a number on, each once; with `follow`, also those to come, until the run has ended, whatever
     * becomes of the connection.
     */
    events(run: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"runs.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, run, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "runs.events", { input: { params: { run }, query, ...given }, resume: true });
    },
    /** The events of all runs, from the first or from after a position, then those to come, until the signal. */
    allEvents: ({ signal, ...query }: QueryInput<"runs.allEvents"> & Signal = {}) =>
      eventData<EventData<"runs.allEvents">>(to, "runs.allEvents", { input: { query, ...(signal && { signal }) }, resume: true }),
    send: (run: string, body: BodyInput<"runs.send">, given: Signal = {}) => call(to, "runs.send", { params: { run }, body, ...given }),
    answer: (run: string, body: BodyInput<"runs.answer">, given: Signal = {}) =>
      call(to, "runs.answer", { params: { run }, body, ...given }),
    pause: (run: string, body: BodyInput<"runs.pause"> = {}, given: Signal = {}) =>
      call(to, "runs.pause", { params: { run }, body, ...given }),
    resume: (run: string, body: BodyInput<"runs.resume"> = {}, given: Signal = {}) =>
      call(to, "runs.resume", { params: { run }, body, ...given }),
    /** The next turn of a run that has ended. */
    continue: (run: string, body: BodyInput<"runs.continue">, given: Signal = {}) =>
      call(to, "runs.continue", { params: { run }, body, ...given }),
    stop: (run: string, given: Signal = {}) => call(to, "runs.stop", { params: { run }, ...given }),
  };
}

async function* pages(to: Connection, run: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const page: Json<"runs.events"> = await call(to, "runs.events", { params: { run }, query: { fromSeq: next, limit: 1000 }, ...given });
    yield* page.events;
    next = page.next;
  }
}

function sessionCalls(to: Connection) {
  return {
    list: async (given: Signal = {}) => (await call(to, "sessions.list", given)).sessions,
    get: (session: string, given: Signal = {}) => call(to, "sessions.get", { params: { session }, ...given }),
    diff: (session: string, query: QueryInput<"sessions.diff"> = {}, given: Signal = {}) =>
      call(to, "sessions.diff", { params: { session }, query, ...given }),
    /** As git writes it. */
    async patch(session: string, query: QueryInput<"sessions.patch"> = {}, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "sessions.patch", { input: { params: { session }, query, ...given }, accept: "*/*" }));
    },
    apply: (session: string, body: BodyInput<"sessions.apply"> = {}, given: Signal = {}) =>
      call(to, "sessions.apply", { params: { session }, body, ...given }),
    branch: (session: string, body: BodyInput<"sessions.branch"> = {}, given: Signal = {}) =>
      call(to, "sessions.branch", { params: { session }, body, ...given }),
    unlock: (session: string, body: BodyInput<"sessions.unlock"> = {}, given: Signal = {}) =>
      call(to, "sessions.unlock", { params: { session }, body, ...given }),
    discard: (session: string, query: QueryInput<"sessions.discard"> = {}, given: Signal = {}) =>
      call(to, "sessions.discard", { params: { session }, query, ...given }),
  };
}

function streamOf({ body }: Response): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (controller) => controller.close() });
}

function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new CaissonError("invalid", `${JSON.stringify(text)} is not an address`, {
      hint: "An address looks like http://127.0.0.1:7433.",
    });
  }
  return text.replace(/\/+$/, "");
}
