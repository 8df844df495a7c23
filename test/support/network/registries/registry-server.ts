import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { RegistryName } from "../../../../src/contract/network/network.ts";
import { type Crate, cratesShelf } from "./crates-shelf.ts";
import { type DebianPackage, debianShelf } from "./debian-shelf.ts";
import { type GoModule, goShelf } from "./go-shelf.ts";
import { type NpmPackage, npmShelf } from "./npm-shelf.ts";
import { type PythonPackage, pypiShelf } from "./pypi-shelf.ts";
import { hash, type Item, type Shelf } from "./shelf.ts";

export interface RegistryContents {
  npm: readonly NpmPackage[];
  pypi: readonly PythonPackage[];
  crates: readonly Crate[];
  go: readonly GoModule[];
  debian: readonly DebianPackage[];
}

/** Covers a dependency in each registry that has them, a scoped name, and two versions. */
export const someContents: RegistryContents = {
  npm: [
    { name: "caisson-left", version: "1.0.0" },
    { name: "caisson-left", version: "1.1.0" },
    { name: "@caisson/scoped", version: "2.0.0", dependencies: { "caisson-left": "^1.0.0" } },
    { name: "caisson-old", version: "0.0.1", withoutIntegrity: true },
  ],
  pypi: [
    { name: "caisson-wheel", version: "1.0", requires: ["caisson-dep>=1"] },
    { name: "caisson-dep", version: "1.2" },
  ],
  crates: [
    { name: "caisson-tiny", version: "0.1.0" },
    { name: "caisson-tiny", version: "0.2.0" },
  ],
  go: [
    { path: "example.com/Tiny", version: "v1.0.0" },
    { path: "example.com/Tiny", version: "v1.1.0" },
  ],
  debian: [{ name: "caisson-tool", version: "1.0" }],
};

export const DEBIAN_SUITE = "stable";

/** Faults of a path: other content, a truncated response, a status, or no response. */
export type Fault = { body: Buffer } | { cutAfterBytes: number } | { status: number; headers?: Record<string, string> } | { silent: true };

export interface RegistryServer extends AsyncDisposable {
  url: string;
  /** The upstreams for a mirror. */
  upstreams: Record<RegistryName, string>;
  /** Returns the requests since the last call. */
  requests(): { method: string; path: string; headers: IncomingMessage["headers"] }[];
  /** Adds or replaces an item by its path on the server; null removes it. */
  put(path: string, item: Item | null): void;
  fault(path: string, fault: Fault | null): void;
  has(path: string): boolean;
  body(path: string): Buffer;
  /** Refuses connections until `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/**
 * Starts all five registries with their real protocols on one port. `listen` is the address; `name` or `publicUrl` is
 * how its own pages refer to it, if that differs.
 */
export async function startRegistryServer(
  contents: Partial<RegistryContents> = someContents,
  { host = "127.0.0.1", port = 0, name = host, publicUrl }: { host?: string; port?: number; name?: string; publicUrl?: string } = {},
): Promise<RegistryServer> {
  const shelf: Shelf = new Map();
  const faults = new Map<string, Fault>();
  let seen: ReturnType<RegistryServer["requests"]> = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").replace(/\?.*/, "");
    seen.push({ method: request.method ?? "", path, headers: request.headers });
    answer({ request, response, item: shelf.get(path), fault: faults.get(path) });
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket.once("close", () => sockets.delete(socket))));
  await listen(server, host, port);
  const own = (server.address() as AddressInfo).port;
  const url = publicUrl ?? `http://${name}:${own}`;
  fill(shelf, url, contents);
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const itemAt = (path: string) => {
    const item = shelf.get(path);
    if (item === undefined) throw new Error(`nothing at ${path}`);
    return typeof item === "function" ? item({}) : item;
  };
  return {
    url,
    upstreams: { npm: `${url}/npm/`, pypi: `${url}/pypi`, crates: `${url}/crates/`, go: `${url}/go`, debian: url },
    requests() {
      const before = seen;
      seen = [];
      return before;
    },
    put: (path, item) => void (item === null ? shelf.delete(path) : shelf.set(path, item)),
    fault: (path, fault) => void (fault === null ? faults.delete(path) : faults.set(path, fault)),
    has: (path) => shelf.has(path),
    body: (path) => itemAt(path).body,
    stop,
    start: () => listen(server, host, own),
    [Symbol.asyncDispose]: async () => {
      if (server.listening) await stop();
    },
  };
}

function fill(shelf: Shelf, url: string, contents: Partial<RegistryContents>): void {
  const add = (prefix: string, part: Shelf) => {
    for (const [path, item] of part) shelf.set(`${prefix}${path}`, item);
  };
  add("/npm/", npmShelf(`${url}/npm/`, contents.npm ?? []));
  add("/pypi/", pypiShelf(`${url}/pypi/`, contents.pypi ?? []));
  add("/crates/", cratesShelf(`${url}/crates/`, contents.crates ?? []));
  add("/go/", goShelf(contents.go ?? []));
  add("/debian/", debianShelf(DEBIAN_SUITE, contents.debian ?? []));
  add("/debian-security/", debianShelf(`${DEBIAN_SUITE}-security`, []));
}

interface Answering {
  request: IncomingMessage;
  response: ServerResponse;
  item: Item | ((headers: IncomingMessage["headers"]) => Item) | undefined;
  fault: Fault | undefined;
}

function answer({ request, response, item, fault }: Answering): void {
  if (fault !== undefined && "silent" in fault) return;
  if (fault !== undefined && "status" in fault) return void response.writeHead(fault.status, fault.headers).end("so it goes\n");
  if (item === undefined) return void response.writeHead(404, { "content-type": "text/plain" }).end("not here\n");
  const { type, body: own } = typeof item === "function" ? item(request.headers) : item;
  const body = fault !== undefined && "body" in fault ? fault.body : own;
  const etag = `"${hash("sha256", body).slice(0, 16)}"`;
  const headers = { "content-type": type, etag, "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT", vary: "accept" };
  if (request.headers["if-none-match"] === etag) return void response.writeHead(304, headers).end();
  if (fault !== undefined && "cutAfterBytes" in fault) {
    response.writeHead(200, { ...headers, "content-length": body.length });
    response.write(body.subarray(0, fault.cutAfterBytes), () => response.destroy());
    return;
  }
  const packed = request.headers["accept-encoding"] === "gzip" && type !== "application/octet-stream";
  const sent = packed ? gzipSync(body) : body;
  response.writeHead(200, { ...headers, "content-length": sent.length, ...(packed ? { "content-encoding": "gzip" } : {}) }).end(sent);
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}
