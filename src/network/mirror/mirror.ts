import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { RegistryName } from "../../contract/network.ts";
import { MIRROR_PORT } from "../inside/ports.ts";
import { type ConnectionAccount, openAccount } from "./connection-account.ts";
import { insideSettings } from "./inside-settings.ts";
import type { Mirror, MirrorOptions } from "./mirror-options.ts";
import { answerError, answerFound, answerText, freshnessHeader } from "./package-answer.ts";
import { openPackages, type Packages } from "./packages.ts";
import { debianHosts } from "./registries/debian.ts";
import { createRegistries } from "./registries/registries.ts";
import type { Registry, Routed } from "./registry.ts";
import { parseTarget } from "./request-target.ts";

const CONNECTIONS_MAX = 512;
/** Between requests, and until the first is there as a whole. */
const IDLE_MS = 120_000;
/** What clients are told; less than we wait, so that none asks in the moment we close. */
const IDLE_TOLD_MS = 90_000;
const HEADER_BYTES_MAX = 16 * 1024;
/** Of a request that is answered without being read, such as npm's question about vulnerabilities. */
const BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * A read-only mirror of package registries for one sandbox. Throws `invalid` for an upstream that is not a base URL.
 */
export function createMirror(options: MirrorOptions): Mirror {
  const origin = options.origin ?? `http://127.0.0.1:${MIRROR_PORT}`;
  const own = "packages" in options ? null : openPackages(options);
  const packages = "packages" in options ? options.packages : (own as Packages);
  const registries = createRegistries({ upstreams: options.upstreams ?? {}, origin, packages });
  const served = () => (typeof options.registries === "function" ? options.registries() : options.registries);
  const connections = new Map<Duplex, Connection>();
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, keepAliveTimeout: IDLE_TOLD_MS }, (request, response) => {
    const connection = connections.get(request.socket);
    if (connection === undefined) return response.destroy();
    connection.begin(request, response);
    void serve({ request, response, registries, served: served(), packages, origin, connection }).catch(() => response.destroy());
  });
  server.on("clientError", (_error, socket) => socket.destroy());

  return {
    handle({ stream }) {
      stream.on("error", () => stream.destroy());
      const account = openAccount(options.emit, Number(new URL(origin).port || 80));
      if (connections.size >= CONNECTIONS_MAX) return tooMany(stream, account);
      const connection = openConnection(stream, account);
      connections.set(stream, connection);
      stream.once("close", () => {
        connections.delete(stream);
        connection.end();
      });
      server.emit("connection", stream);
    },
    get env() {
      return insideSettings(served(), origin).env;
    },
    get files() {
      return insideSettings(served(), origin).files;
    },
    plain: (host) => served().includes("debian") && debianHosts.includes(host.toLowerCase()),
    async close() {
      const ending = [...connections.keys()].map((stream) => new Promise((resolve) => stream.once("close", resolve).destroy()));
      await Promise.all(ending);
      server.close();
      await own?.close();
    },
  };
}

interface Connection extends Pick<ConnectionAccount, "used" | "denied"> {
  begin(request: IncomingMessage, response: ServerResponse): void;
  received(bytes: number): void;
  end(): void;
}

function openConnection(stream: Duplex, account: ConnectionAccount): Connection {
  let active = 0;
  let sent = 0;
  let received = 0;
  const idle = setTimeout(() => active === 0 && stream.destroy(), IDLE_MS);
  return {
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
  registries: readonly Registry[];
  served: readonly RegistryName[];
  packages: Packages;
  origin: string;
  connection: Connection;
}

async function serve(serving: Serving): Promise<void> {
  const { request, response, packages, connection } = serving;
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const chosen = choose(serving);
  if (chosen === null) return;
  const { registry, segments } = chosen;
  const { upstream } = registry;
  const denied = (reason: "method_not_allowed" | "path_not_allowed" | "not_verified", text: string) =>
    connection.denied({ host: upstream.hostname, reason, method, path: request.url ?? "", text });
  const accept = (request.headers.accept ?? "").toLowerCase();
  try {
    const routed: Routed = await registry.route({ method, segments, accept });
    if (routed.kind === "unknown") {
      const reads = method === "GET";
      const text = reads
        ? `caisson mirror: ${registry.name} has nothing at this address`
        : `caisson mirror: it is read-only, ${method} is not allowed`;
      denied(reads ? "path_not_allowed" : "method_not_allowed", text);
      return answerText(response, reads ? 404 : 405, text, reads ? {} : { allow: "GET, HEAD" });
    }
    if (routed.kind === "answer") {
      const body = Buffer.from(routed.body);
      response.writeHead(routed.status, { "content-type": routed.contentType, "content-length": body.length, "cache-control": "no-cache" });
      response.end(request.method === "HEAD" ? undefined : body);
      return;
    }
    const obtained = await packages.obtain(routed.resource);
    connection.used({ registry: registry.name, upstream, address: obtained.kind === "found" ? obtained.address : "" });
    if (obtained.kind === "missing")
      return answerText(
        response,
        obtained.status,
        `caisson mirror: ${upstream.host} has no such thing`,
        freshnessHeader(obtained.freshness),
      );
    const { bytes, error } = await answerFound({ request, response, found: obtained, keeps: routed.resource.keeps });
    connection.received(bytes);
    if (error instanceof CaissonError && error.code === "unsafe") denied("not_verified", error.message);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unsafe") denied("not_verified", error.message);
    answerError(response, error);
  }
}

/** Whose the address is; null when it was refused, and answered. */
function choose({
  request,
  response,
  registries,
  served,
  origin,
  connection,
}: Serving): { registry: Registry; segments: readonly string[] } | null {
  const { method = "", url = "" } = request;
  const refuse = (status: number, reason: "bad_request" | "host_not_allowed" | "path_not_allowed", host: string, why: string) => {
    const text = `caisson mirror: ${why}`;
    connection.denied({ host, reason, method, path: url, text });
    answerText(response, status, text);
    return null;
  };
  const self = new URL(origin);
  const target = parseTarget(url);
  if (target === null) return refuse(400, "bad_request", self.hostname, "this is not the address of a package");
  const host = target.host?.replace(/:80$/, "") ?? null;
  const foreign = host !== null && host !== self.host && !debianHosts.includes(host);
  if (foreign) return refuse(403, "host_not_allowed", host, `it is no proxy, and does not lead to ${host}`);
  const registry = registries.find(({ prefixes }) => prefixes.includes(target.segments[0] ?? ""));
  const apart = host !== null && host !== self.host && registry?.name !== "debian";
  if (registry === undefined || apart)
    return refuse(404, "path_not_allowed", host ?? self.hostname, `there are only ${served.join(", ") || "no registries"} here`);
  if (!served.includes(registry.name)) {
    const why = `the registry ${registry.name} is not among those of this sandbox (${served.join(", ") || "none"})`;
    return refuse(403, "host_not_allowed", registry.upstream.hostname, why);
  }
  return { registry, segments: registry.keepsPrefix ? target.segments : target.segments.slice(1) };
}

function tooMany(stream: Duplex, account: ConnectionAccount): void {
  const text = `caisson mirror: more than ${CONNECTIONS_MAX} connections at once`;
  account.denied({ host: "mirror", reason: "too_many", method: "", path: "", text });
  stream.end(
    `HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
  );
  stream.resume();
}
