import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { StationStatus } from "../../contract/api/station-routes.ts";
import type { Admit, Arrival } from "../admit.ts";
import { createLoopMonitor, type LoopMonitor } from "./loop-monitor.ts";
import { refuseRequest, refuseUpgrade } from "./refuse-request.ts";
import { classOf } from "./request-class.ts";
import { createRequestScheduler } from "./request-scheduler.ts";
import type { StallGuard } from "./stall-guard.ts";

/** Callers whose owner is remembered. */
const OWNERS_MAX = 1_000;

/** Where every request comes in, over all ways: some wait, and some are refused before anything of them is read. */
export interface RequestIntake extends AsyncDisposable {
  request(incoming: IncomingMessage, outgoing: ServerResponse, to: { arrival: Arrival; handle: RequestListener }): void;
  upgrade(request: IncomingMessage, socket: Duplex, to: { arrival: Arrival; accept: () => Promise<void> }): void;
  /** A connection was accepted. */
  accepted(): void;
  /** The same admission, from which the intake learns whose a token is. */
  learningFrom(admit: Admit): Admit;
  load(): NonNullable<StationStatus["load"]>;
  /** A second process answers while this one stands still. */
  guardStalls(served: GuardedServers): Promise<void>;
}

export interface GuardedServers {
  byPort: Server;
  bySocket: Server;
  certificate: (() => Promise<{ cert: string; key: string }>) | null;
  status: () => StationStatus;
}

export interface IntakeOptions {
  /** Instead of one that measures. */
  loop?: LoopMonitor;
}

export function createRequestIntake({ loop = createLoopMonitor() }: IntakeOptions = {}): RequestIntake {
  let guard: StallGuard | undefined;
  const scheduler = createRequestScheduler({ loopDelayMs: () => loop.recentMs() });
  const owners = new Map<string, string>();
  const learn = (authorization: string, key: string) => {
    if (owners.get(authorization) === key) return;
    if (owners.size >= OWNERS_MAX) owners.delete(owners.keys().next().value as string);
    owners.set(authorization, key);
    guard?.admitted(secretOf(authorization));
  };
  /** A token that is not known counts for its address: to send many must not make many shares. */
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
    accepted: () => scheduler.accepted(),
    learningFrom: (admit) => async (request) => {
      const { authorization } = request;
      try {
        const admitted = await admit(request);
        const { caller } = admitted;
        if (authorization !== null && caller.kind === "token") learn(authorization, `owner ${caller.token.owner}`);
        if (authorization !== null && caller.kind === "sandbox") learn(authorization, `inside ${caller.sandbox}`);
        return admitted;
      } catch (error) {
        if (authorization !== null && owners.delete(authorization)) guard?.refused(secretOf(authorization));
        throw error;
      }
    },
    load: () => ({ loopDelayMs: Math.round(loop.recentMs()), ...scheduler.figures() }),
    async guardStalls({ byPort, bySocket, certificate, status }) {
      const { startStallGuard } = await import("./stall-guard.ts");
      guard = startStallGuard({ status, descriptors: { port: descriptorOf(byPort), socket: descriptorOf(bySocket) }, certificate });
    },
    async [Symbol.asyncDispose]() {
      scheduler[Symbol.dispose]();
      loop[Symbol.dispose]();
      await guard?.end();
    },
  };
}

const secretOf = (authorization: string) => authorization.replace(/^Bearer /i, "");

/** Node has no public name for it. */
function descriptorOf(server: Server): number {
  return (server as unknown as { _handle: { fd: number } })._handle.fd;
}
