import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer as createNetServer, type Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import type { StationStatus } from "../../verbs/station-routes.ts";
import type { Admit, Arrival } from "../admit.ts";
import { AHEAD_BYTES } from "../http-server.ts";
import { type CreationPlaces, createCreationPlaces } from "./creation-places.ts";
import { createLoopMonitor, type LoopMonitor } from "./loop-monitor.ts";
import { refuseRequest, refuseUpgrade } from "./refuse-request.ts";
import { classOf, requestClasses } from "./request-class.ts";
import { createRequestScheduler, type Pace, requestPace, type SchedulerFigures } from "./request-scheduler.ts";
import { type ListeningHandle, type StallGuard, startStallGuard } from "./stall-guard.ts";

/** The number of callers whose owner is remembered. */
const OWNERS_MAX = 1_000;

/** The entry point of every request, for all servers. Lets some requests wait, and refuses some before reading them. */
export interface RequestIntake extends AsyncDisposable {
  request(incoming: IncomingMessage, outgoing: ServerResponse, to: { arrival: Arrival; handle: RequestListener }): void;
  upgrade(request: IncomingMessage, socket: Duplex, to: { arrival: Arrival; accept: () => Promise<void> }): void;
  /** Reports an accepted connection. */
  reportConnection(): void;
  /** Wraps the admission, so that the intake learns the owner of each token. */
  learningFrom(admit: Admit): Admit;
  creations: Pick<CreationPlaces, "take">;
  load(): NonNullable<StationStatus["load"]>;
  /** Lets a second process answer while this one is stalled. */
  guardStalls(served: GuardedServers): Promise<void>;
}

export interface GuardedServers {
  byPort: Server;
  bySocket: Server;
  certificate: (() => Promise<{ cert: string; key: string }>) | null;
  status: () => StationStatus;
}

export interface IntakeOptions {
  /** Replaces the real monitor. */
  loop?: LoopMonitor;
  /** Replaces the default pace of all requests. */
  pace?: Pace;
}

export function createRequestIntake({ loop = createLoopMonitor(), pace = requestPace }: IntakeOptions = {}): RequestIntake {
  let guard: StallGuard | undefined;
  const loopDelayMs = () => loop.recentMs();
  const scheduler = createRequestScheduler({ loopDelayMs, pace });
  const creations = createCreationPlaces({ loopDelayMs });
  const copies = new Set<NetServer>();
  const owners = new Map<string, string>();
  const learn = (authorization: string, key: string) => {
    if (owners.get(authorization) === key) return;
    if (owners.size >= OWNERS_MAX) owners.delete(owners.keys().next().value as string);
    owners.set(authorization, key);
    guard?.rememberToken(secretOf(authorization));
  };
  /** An unknown token counts for its address, so that sending many tokens does not create many shares. */
  const keyOf = ({ headers }: IncomingMessage, arrival: Arrival): string => {
    if (arrival.via === "socket") return "socket";
    if (arrival.via === "inside") return `inside ${String(headers["caisson-sandbox"]).slice(0, 64)}`;
    return owners.get(headers.authorization ?? "") ?? `address ${arrival.address}`;
  };
  return {
    request(incoming, outgoing, { arrival, handle }) {
      const { cancel } = scheduler.submit({
        kind: classOf(incoming.method ?? "", incoming.url ?? ""),
        key: keyOf(incoming, arrival),
        start(done) {
          outgoing.once("close", done);
          handle(incoming, outgoing);
        },
        refuse: (refusal) => refuseRequest(incoming, outgoing, refusal),
      });
      outgoing.once("close", cancel);
    },
    upgrade(request, socket, { arrival, accept }) {
      const { cancel } = scheduler.submit({
        kind: "work",
        key: keyOf(request, arrival),
        start: (done) => void accept().finally(done),
        refuse: (refusal) => refuseUpgrade(socket, refusal),
      });
      socket.once("close", cancel);
    },
    reportConnection: () => scheduler.reportConnection(),
    learningFrom: (admit) => async (request) => {
      const { authorization } = request;
      try {
        const admitted = await admit(request);
        const { caller } = admitted;
        if (authorization !== null && caller.kind === "token") learn(authorization, `owner ${caller.token.owner}`);
        if (authorization !== null && caller.kind === "sandbox") learn(authorization, `inside ${caller.sandbox}`);
        return admitted;
      } catch (error) {
        if (authorization !== null && owners.delete(authorization)) guard?.forgetToken(secretOf(authorization));
        throw error;
      }
    },
    creations,
    load: () => ({ loopDelayMs: Math.round(loop.recentMs()), ...sumOf(scheduler.figures(), creations.figures()) }),
    async guardStalls({ byPort, bySocket, certificate, status }) {
      const listeners = { port: handleOf(byPort), socket: handleOf(bySocket) };
      guard = startStallGuard({ status, listeners, certificate, onCopy: (handle) => copies.add(acceptFrom(handle, byPort)) });
    },
    async [Symbol.asyncDispose]() {
      for (const copy of copies) copy.close();
      scheduler[Symbol.dispose]();
      creations[Symbol.dispose]();
      loop[Symbol.dispose]();
      await guard?.end();
    },
  };
}

function sumOf(first: SchedulerFigures, second: SchedulerFigures): SchedulerFigures {
  const refused = { ...first.refused };
  for (const kind of requestClasses) refused[kind] += second.refused[kind];
  return { waiting: first.waiting + second.waiting, refused, waitedMs: Math.max(first.waitedMs, second.waitedMs) };
}

const secretOf = (authorization: string) => authorization.replace(/^Bearer /i, "");

/** Node has no public name for the handle. */
function handleOf(server: Server): ListeningHandle {
  return (server as unknown as { _handle: ListeningHandle })._handle;
}

/**
 * Accepts connections for a server from a copy of its handle, which adds one connection to each turn of the event loop.
 */
function acceptFrom(handle: ListeningHandle, server: Server): NetServer {
  const copy = createNetServer({ allowHalfOpen: true, noDelay: true, highWaterMark: AHEAD_BYTES });
  copy.maxConnections = server.maxConnections;
  copy.on("connection", (socket) => server.emit("connection", socket)).on("error", () => {});
  return copy.listen(handle);
}
