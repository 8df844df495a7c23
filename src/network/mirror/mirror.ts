import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { Denial } from "../egress/denial.ts";
import { createDenialLog } from "../egress/denial-log.ts";
import { egressLimits } from "../egress/egress-limits.ts";
import type { Repeats } from "../egress/repeats.ts";
import { type ConnectionAccount, openAccount } from "./connection-account.ts";
import type { Mirror, MirrorConnection, MirrorOptions } from "./mirror-options.ts";
import { answerError, answerFound, answerText, freshnessHeader } from "./package-answer.ts";
import { openPackages, type Packages } from "./packages.ts";
import { createRegistries } from "./registries/registries.ts";
import type { Registry, RegistryAddress, Routed } from "./registry.ts";
import { pathSegments } from "./request-target.ts";
import { upstreamFailure } from "./upstream-failure.ts";
import { portOf } from "./upstream-url.ts";

const CONNECTIONS_MAX = 512;
/** How long a connection may wait between requests, and for its first complete one. */
const IDLE_MS = 120_000;
/** The keep-alive time for clients. Shorter than ours, so that no request arrives just as we close. */
const IDLE_TOLD_MS = 90_000;
const HEADER_BYTES_MAX = 16 * 1024;
/** The limit for a request body that is not read, such as npm's audit request. */
const BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Creates a read-only mirror of package registries for one sandbox. Throws `invalid` for an upstream that is not a base
 * URL.
 */
export function createMirror(options: MirrorOptions): Mirror {
  const own = "packages" in options ? null : openPackages(options);
  const packages = "packages" in options ? options.packages : (own as Packages);
  const all = createRegistries({ upstreams: options.upstreams ?? {}, packages });
  const enabledRegistries = () => {
    const names = typeof options.registries === "function" ? options.registries() : options.registries;
    return all.filter(({ name }) => names.includes(name));
  };
  const failures = createDenialLog({
    emit: options.emit,
    windowMs: egressLimits.denialWindowMs,
    differentMax: egressLimits.denialsMax,
  });
  const connections = new Map<Duplex, Connection>();
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, keepAliveTimeout: IDLE_TOLD_MS }, (request, response) => {
    const connection = connections.get(request.socket);
    if (connection === undefined) return response.destroy();
    connection.begin(request, response);
    void serve({ request, response, registries: enabledRegistries(), packages, failures, connection }).catch(() => response.destroy());
  });
  server.on("clientError", (_error, socket) => socket.destroy());

  return {
    handle({ stream, origin }) {
      stream.on("error", () => stream.destroy());
      const account = openAccount(options.emit, origin);
      if (connections.size >= CONNECTIONS_MAX) return tooMany(stream, account);
      const connection = openConnection({ stream, origin }, account);
      connections.set(stream, connection);
      stream.once("close", () => {
        connections.delete(stream);
        connection.end();
      });
      server.emit("connection", stream);
    },
    serves: (host, port) =>
      enabledRegistries().some(({ addresses }) => addresses.some((each) => each.host === host && each.ports.includes(port))),
    async close() {
      const ending = [...connections.keys()].map((stream) => new Promise((resolve) => stream.once("close", resolve).destroy()));
      await Promise.all(ending);
      server.close();
      failures.flush();
      await own?.close();
    },
  };
}

interface Connection extends Pick<ConnectionAccount, "used" | "denied"> {
  readonly origin: URL;
  begin(request: IncomingMessage, response: ServerResponse): void;
  received(bytes: number): void;
  end(): void;
}

function openConnection({ stream, origin }: MirrorConnection, account: ConnectionAccount): Connection {
  let active = 0;
  let sent = 0;
  let received = 0;
  const idle = setTimeout(() => active === 0 && stream.destroy(), IDLE_MS);
  return {
    origin,
    used: account.used,
    denied: account.denied,
    begin(request, response) {
      active++;
      sent += request.rawHeaders.reduce((sum, text) => sum + text.length + 2, (request.url ?? "").length);
      response.once("close", () => {
        active--;
        idle.refresh();
      });
      let body = 0;
      if (request.method !== "GET" && request.method !== "HEAD") {
        request.on("data", (part: Buffer) => {
          body += part.length;
          sent += part.length;
          if (body > BODY_BYTES_MAX) stream.destroy();
        });
      }
    },
    received(bytes) {
      received += bytes;
    },
    end() {
      clearTimeout(idle);
      account.ended({ sent, received });
    },
  };
}

interface Serving {
  request: IncomingMessage;
  response: ServerResponse;
  /** The registries that the policy currently names. */
  registries: readonly Registry[];
  packages: Packages;
  failures: Repeats<Denial>;
  connection: Connection;
}

async function serve(serving: Serving): Promise<void> {
  const { request, response, connection } = serving;
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const refuse = (status: number, reason: "bad_request" | "method_not_allowed" | "path_not_allowed", why: string) => {
    const text = `caisson mirror: ${why}`;
    connection.denied({ reason, method, path: request.url ?? "", text });
    answerText(response, status, text, status === 405 ? { allow: "GET, HEAD" } : {});
  };
  const segments = pathSegments(request.url ?? "");
  if (segments === null) return refuse(400, "bad_request", "this is not a package address");
  let registry: Registry | null = null;
  try {
    for (const candidate of candidates(serving, segments)) {
      registry = candidate.registry;
      const accept = (request.headers.accept ?? "").toLowerCase();
      const routed = await candidate.address.route({ method, segments: candidate.segments, accept, base: candidate.base });
      if (routed.kind !== "unknown") return await answer(serving, { registry, routed });
    }
    if (method !== "GET") return refuse(405, "method_not_allowed", `the mirror is read-only, so ${method} is not allowed`);
    refuse(404, "path_not_allowed", `there is nothing at this address of ${connection.origin.host}`);
  } catch (error) {
    if (registry !== null) tellFailure(serving, { registry, error });
    answerError(response, error);
  }
}

/** Returns the matching addresses, longest first: several registries may be on one host, each below its own path. */
function candidates({ registries, connection: { origin } }: Serving, segments: readonly string[]): Candidate[] {
  const port = portOf(origin);
  const found = registries.flatMap((registry) =>
    registry.addresses.flatMap((address): Candidate[] => {
      const prefix = pathSegments(address.path) ?? [];
      const fits =
        address.host === origin.hostname && address.ports.includes(port) && prefix.every((each, index) => each === segments[index]);
      return fits ? [{ registry, address, segments: segments.slice(prefix.length), base: new URL(address.path, origin) }] : [];
    }),
  );
  return found.toSorted((a, b) => b.address.path.length - a.address.path.length);
}

interface Candidate {
  registry: Registry;
  address: RegistryAddress;
  /** The part of the path below the address. */
  segments: readonly string[];
  base: URL;
}

async function answer(serving: Serving, { registry, routed }: { registry: Registry; routed: Exclude<Routed, { kind: "unknown" }> }) {
  const { request, response, packages, connection } = serving;
  if (routed.kind === "answer") {
    const body = Buffer.from(routed.body);
    response.writeHead(routed.status, { "content-type": routed.contentType, "content-length": body.length, "cache-control": "no-cache" });
    response.end(request.method === "HEAD" ? undefined : body);
    return;
  }
  const obtained = await packages.obtain(routed.resource);
  const { upstream } = registry;
  connection.used({ registry: registry.name, upstream, address: obtained.kind === "found" ? obtained.address : "" });
  if (obtained.kind === "missing") {
    const text = `caisson mirror: ${upstream.host} does not have this`;
    return answerText(response, obtained.status, text, freshnessHeader(obtained.freshness));
  }
  const { bytes, error } = await answerFound({ request, response, found: obtained, keeps: routed.resource.keeps });
  connection.received(bytes);
  if (error !== null) tellFailure(serving, { registry, error });
}

/** Reports the failure, because clients say little about its reason, and some mistake it for a missing package. */
function tellFailure({ request, connection, failures }: Serving, { registry, error }: { registry: Registry; error: unknown }): void {
  const [method, path] = [request.method ?? "", request.url ?? ""];
  if (error instanceof CaissonError && error.code === "unsafe") {
    connection.denied({ reason: "not_verified", method, path, text: error.message });
    return;
  }
  const failure = upstreamFailure(registry, error);
  if (failure !== null) failures.add({ ...failure, attempt: { ...failure.attempt, method, path } });
}

function tooMany(stream: Duplex, account: ConnectionAccount): void {
  const text = `caisson mirror: more than ${CONNECTIONS_MAX} connections are open`;
  account.denied({ reason: "too_many", method: "", path: "", text });
  stream.end(
    `HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
  );
  stream.resume();
}
