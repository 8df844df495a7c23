import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { serveGit } from "./git-http-backend.ts";

export interface GitServer extends AsyncDisposable {
  url: string;
  /** Returns the requests since the last call. */
  requests(): { method: string; path: string; authorization: string | undefined }[];
}

/** Serves the repositories in a folder over HTTP with git's own server program. */
export async function startGitServer(
  folder: string,
  options: { password?: string; tls?: { cert: Buffer; key: Buffer } } = {},
): Promise<GitServer> {
  let seen: ReturnType<GitServer["requests"]> = [];
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", "http://x");
    const { authorization } = request.headers;
    seen.push({ method: request.method ?? "", path: url.pathname, authorization });
    const wanted = options.password === undefined ? undefined : `Basic ${Buffer.from(options.password).toString("base64")}`;
    if (wanted !== undefined && authorization !== wanted) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("who are you?");
      return;
    }
    serveGit({ folder }, request, response);
  };
  const server = options.tls === undefined ? createServer(listener) : createTlsServer(options.tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http${options.tls === undefined ? "" : "s"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests() {
      const before = seen;
      seen = [];
      return before;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
