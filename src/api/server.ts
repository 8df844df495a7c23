import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { PROTOCOL } from "../contract/protocol.ts";
import { stationFolder } from "../contract/station-note.ts";
import { LOCAL_OWNER, type OwnerView } from "../contract/token/owner.ts";
import { defined } from "../lib/defined.ts";
import { insideSocket } from "../lib/inside-socket.ts";
import type { Station } from "../verbs/station.ts";
import type { ShutDown, StationStatus } from "../verbs/station-routes.ts";
import { type Arrival, createAdmission } from "./admit.ts";
import { lazyAnswers } from "./answer-store.ts";
import { createApp } from "./app.ts";
import { type AuditSink, createAudit } from "./audit.ts";
import { type Exposure, type ExposureOptions, judgeExposure } from "./exposure.ts";
import type { Authenticate, AuthenticateSandbox } from "./gate.ts";
import { type Faces, serverOf } from "./http-server.ts";
import { closedServer, listenOnPort, listenOnSocket } from "./listen.ts";
import type { McpConnections } from "./mcp/http-connections.ts";
import { createObservation, type ObserveOptions } from "./observe/observation.ts";
import { takePlace } from "./one-station.ts";
import { createOpenRequests, type OpenRequests } from "./open-requests.ts";
import { createRequestIntake, type IntakeOptions } from "./overload/request-intake.ts";
import { createPortConnections } from "./port-connections.ts";
import { withPreviewUrls } from "./previews/preview-urls.ts";
import type { ServePreviews } from "./previews/serve-previews.ts";
import { createSignInCodes } from "./sign-in-codes.ts";
import type { ServeStreams } from "./streams/stream.ts";
import { createUpgrades } from "./streams/upgrades.ts";

/** How long requests in progress may take after the server starts to end, and how long aborted ones may take. */
const GRACE_MS = 5_000;
const ABORT_MS = 1_000;
/** How often the certificate files are read again. */
const CERTIFICATE_LOOK_MS = 60 * 60_000;

export interface ServerOptions extends ExposureOptions {
  /** Returns the station as a caller sees it. */
  stationFor(view: OwnerView): Station;
  authenticate: Authenticate;
  authenticateSandbox: AuthenticateSandbox;
  audit: AuditSink;
  stateDir: string;
  version: string;
  /** The configuration in use, for commands that check whether it matches theirs. */
  settings: string;
  /** 0 picks any free port. */
  port: number;
  onDefect: (error: unknown) => void;
  observe?: ObserveOptions;
  /** The runs that the station drives. */
  runs: ServerRuns;
  consoleDir: string;
  intake?: IntakeOptions;
  /** The connection limit of the port. Default: a quarter of the files that this process may have open. */
  connectionsMax?: number | undefined;
  /** Whether a second process answers while this one is blocked. */
  guardsStalls?: boolean;
}

export interface ServerRuns {
  counts(): { atWork: number; queued: number; draining: boolean };
  /** Starts nothing more, and accepts no new work. */
  drain(): void;
  /** Resolves when the station drives no run. */
  idle(): Promise<void>;
}

export interface RunningServer extends AsyncDisposable {
  readonly status: StationStatus;
  readonly socketPath: string;
  /** The port in use. */
  readonly port: number;
  /** Resolves when a caller of the API requests the shutdown. */
  readonly askedToEnd: Promise<ShutDown>;
  /** Resolves when a caller requests a shutdown that waits for no run. */
  readonly askedToEndAtOnce: Promise<void>;
  /** Resolves when the station drives no run. */
  drained(): Promise<void>;
  /** Accepts no more requests, gives those in progress a few seconds, and ends. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts the station on a port of this machine, for callers with a token, and on a socket in the state folder, for its
 * owner. Throws `conflict` for a second station on the same state folder or a port in use, `invalid` for a listen
 * address that other machines can reach without TLS.
 */
export async function startServer(serverOptions: ServerOptions): Promise<RunningServer> {
  const exposure = await judgeExposure(serverOptions);
  const options = { ...serverOptions, stationFor: withPreviewUrls(serverOptions.stationFor, exposure.previews) };
  const place = await takePlace(options.stateDir, { version: options.version, protocol: PROTOCOL, settings: options.settings });
  const requests = createOpenRequests();
  const { runs } = options;
  const [shutDownRequest, askedAtOnce] = [Promise.withResolvers<ShutDown>(), Promise.withResolvers<void>()];
  const startedAt = new Date().toISOString();
  let url = "";
  const status = (): StationStatus => {
    const { draining, atWork, queued } = runs.counts();
    const itself = { version: options.version, protocol: PROTOCOL, pid: process.pid, startedAt, url, requests: requests.count() };
    return { ...itself, draining, runs: { atWork, queued }, load: intake.load() };
  };
  const intake = createRequestIntake(options.intake);
  const station = options.stationFor({ owner: LOCAL_OWNER, sees: "everything" });
  const codes = createSignInCodes({ tokens: station.tokens });
  const admit = intake.learningFrom(createAdmission({ ...options, findCode: codes.find, names: exposure }));
  const mcp = lazyMcp(options);
  const answers = lazyAnswers(stationFolder(options.stateDir).answersPath, options);
  let closing: Promise<void> | undefined;
  const observation = createObservation({
    ...{ station, status, version: options.version, names: exposure },
    observe: options.observe ?? {},
    isEnding: () => closing !== undefined || runs.counts().draining,
    onDefect: options.onDefect,
  });
  const audit = createAudit({ sink: options.audit, onDefect: options.onDefect });
  const app = createApp({
    ...options,
    audit,
    mcp: mcp.open,
    answers: answers.open,
    admit,
    observation,
    requests,
    creations: intake.creations,
    names: exposure,
    server: {
      status,
      codes,
      shutDown(request) {
        runs.drain();
        shutDownRequest.resolve(request);
        if (!request.drain) askedAtOnce.resolve();
      },
      openApi: async () => (await import("./openapi.ts")).openApiDocument(),
    },
  });
  const streams = lazyStreams();
  const upgrades = createUpgrades({ ...options, audit, admit, requests, streams: streams.load });
  const faces: Faces = { app, upgrades, intake };
  const previews = await previewsOf(serverOptions, exposure);
  const { server: byPort, stopRenewing } = await portServer(faces, { ...options, exposure, previews });
  const bySocket = serverOf(faces, { server: createServer, arrivalOf: () => ({ via: "socket" }) });
  const byInside = serverOf(faces, { server: createServer, arrivalOf: () => ({ via: "inside" }) });
  const servers = [byPort, bySocket, byInside];
  try {
    url = await listenOnPort(byPort, { exposure, port: options.port, wasKilled: place.wasKilled });
    await listenOnSocket(bySocket, place.socketPath);
    await listenOnSocket(byInside, insideSocket(options.stateDir));
    if (options.guardsStalls === true) await intake.guardStalls({ byPort, bySocket, certificate: exposure.certificate, status });
  } catch (error) {
    stopRenewing();
    await intake[Symbol.asyncDispose]();
    for (const server of servers) server.close();
    await place[Symbol.asyncDispose]();
    throw error;
  }
  const close = async () => {
    stopRenewing();
    observation[Symbol.dispose]();
    // Together with the guard, which occupies the port until it has ended.
    const closed = Promise.all([intake[Symbol.asyncDispose](), ...servers.map(closedServer)]);
    requests.endStreams();
    previews?.close();
    await mcp.close();
    await finishRequests(requests);
    await inTime(streams.close(), ABORT_MS);
    for (const server of servers) server.closeIdleConnections();
    if (!(await inTime(closed, ABORT_MS))) for (const server of servers) server.closeAllConnections();
    answers.close();
    await place[Symbol.asyncDispose]();
  };
  const closeOnce = () => (closing ??= close());
  return {
    get status() {
      return status();
    },
    socketPath: place.socketPath,
    port: (byPort.address() as AddressInfo).port,
    askedToEnd: shutDownRequest.promise,
    askedToEndAtOnce: askedAtOnce.promise,
    drained: () => runs.idle(),
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

/** Gives requests in progress a few seconds, then aborts them. */
async function finishRequests(requests: OpenRequests): Promise<void> {
  if (await inTime(requests.idle(), GRACE_MS)) return;
  requests.abortAll();
  await inTime(requests.idle(), ABORT_MS);
}

/** Loaded only if previews have public names. */
async function previewsOf({ stationFor }: Pick<ServerOptions, "stationFor">, { previews }: Exposure): Promise<ServePreviews | null> {
  if (previews === null) return null;
  const { createServePreviews } = await import("./previews/serve-previews.ts");
  return createServePreviews(previews, stationFor({ owner: LOCAL_OWNER, sees: "everything" }).networks);
}

/** Loaded with the first client, since few stations have one. */
function lazyMcp({ version, onDefect }: Pick<ServerOptions, "version" | "onDefect">) {
  let opening: Promise<McpConnections> | undefined;
  const open = async () => (await import("./mcp/http-connections.ts")).createMcpConnections({ version, onDefect });
  return {
    open: () => (opening ??= open()),
    close: async () => await (await opening)?.[Symbol.asyncDispose](),
  };
}

/** Creates the server of the port, with TLS if there is a certificate, which is read again every hour. */
async function portServer(
  faces: Faces,
  {
    exposure,
    previews,
    onDefect,
    connectionsMax,
  }: { exposure: Exposure; previews: ServePreviews | null } & Pick<ServerOptions, "onDefect" | "connectionsMax">,
): Promise<{ server: Server; stopRenewing: () => void }> {
  const connections = createPortConnections({ isShared: exposure.isProxy, ...defined({ max: connectionsMax }) });
  const arrivalOf = ({ socket, headers }: IncomingMessage): Arrival => {
    const forwardedFor = headers["x-forwarded-for"];
    const address = exposure.callerOf(socket.remoteAddress ?? "unknown", typeof forwardedFor === "string" ? forwardedFor : null);
    return { via: "port", address, ...defined({ connection: connections.of(socket) }) };
  };
  const onConnection = (socket: Socket) => {
    if (!exposure.mayConnect(socket.remoteAddress ?? "")) socket.destroy();
  };
  const { certificate } = exposure;
  if (certificate === null) {
    const server = serverOf(faces, { server: createServer, arrivalOf, previews, connections });
    return { server: server.on("connection", onConnection), stopRenewing: () => {} };
  }
  // Loaded only here, since most stations are reached locally or through a proxy.
  const { createServer: createWithTls } = await import("node:https");
  const tls = { ...(await certificate()), minVersion: "TLSv1.2" as const };
  const server = serverOf(faces, { server: createWithTls, arrivalOf, previews, connections, tls });
  const renew = async () => (server as unknown as TlsServer).setSecureContext(await certificate());
  // A certificate that is just being written may be unreadable; the current one then stays in use.
  const timer = setInterval(() => void renew().catch(onDefect), CERTIFICATE_LOOK_MS).unref();
  return { server: server.on("connection", onConnection), stopRenewing: () => clearInterval(timer) };
}

/** Loaded with the first WebSocket. */
function lazyStreams(): { load: () => Promise<ServeStreams>; close: () => Promise<void> } {
  let loading: Promise<{ streams: ServeStreams; close: () => Promise<void> }> | undefined;
  return {
    async load() {
      loading ??= import("./streams/serve-streams.ts").then(({ createServeStreams }) => createServeStreams());
      return (await loading).streams;
    },
    close: async () => (await loading)?.close(),
  };
}

async function inTime(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => timeout.resolve(false), timeoutMs);
  try {
    return await Promise.race([work.then(() => true), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
