import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerFault, createFaults, type Faults } from "./forge-faults.ts";
import { createForgePulls, type ForgePulls } from "./forge-pulls.ts";
import { type ForgeRepository, makeForgeRepository } from "./forge-repository.ts";
import { serveGit } from "./git-http-backend.ts";

export interface ForgeServer extends AsyncDisposable {
  url: string;
  /** The URL of its one repository, for clones and ships. */
  remote: string;
  repository: ForgeRepository;
  pulls: ForgePulls;
  faults: Faults;
  /** Returns the requests since the last call. */
  requests(): { method: string; path: string; authorization: string | undefined }[];
}

export interface ForgeServerOptions {
  kind: "github" | "gitea";
  /** The folder in which the repository is created. */
  folder: string;
  token: string;
  files: Readonly<Record<string, string>>;
  /** Any free port by default. */
  port?: number;
  /** The hash of its commits; sha1 by default. */
  hash?: "sha1" | "sha256";
}

/**
 * Starts a forge with one repository, `team/project`. It has the pull request API of GitHub or Gitea, backed by git's
 * own server program. Every client may read; pushes and API calls need the token.
 */
export async function startForgeServer(options: ForgeServerOptions): Promise<ForgeServer> {
  const { kind, folder, token } = options;
  const repository = makeForgeRepository(folder, "team/project", options.files, options);
  const faults = createFaults();
  let url = "";
  const pulls = createForgePulls({ kind, repository, url: () => url });
  let seen: ReturnType<ForgeServer["requests"]> = [];
  const api = kind === "github" ? "/api/v3/repos/team/project" : "/api/v1/repos/team/project";
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://x");
    const { authorization } = request.headers;
    seen.push({ method: request.method ?? "", path: request.url ?? "", authorization });
    const fault = faults.take(request);
    if (fault !== null && answerFault(fault, request, response)) return;
    const answer = (status: number, body: unknown) => {
      const statusCode = fault?.kind === "after" ? fault.status : status;
      response.writeHead(statusCode, { "content-type": "application/json" }).end(body === undefined ? "" : JSON.stringify(body));
    };
    if (!pathname.startsWith(api)) {
      const user = authorization === `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}` ? "caisson" : null;
      const isPush = request.url?.includes("git-receive-pack") === true;
      if (isPush && user === null) response.writeHead(401, { "www-authenticate": "Basic" }).end();
      else if (fault?.kind === "after") serveGit({ folder, user }, request, hidden(response, fault.status));
      else serveGit({ folder, user }, request, response);
      return;
    }
    if (authorization !== (kind === "github" ? `Bearer ${token}` : `token ${token}`)) answer(401, { message: "Bad credentials" });
    else
      void bodyOf(request).then(async (body) => {
        if (fault?.kind === "held") {
          fault.arrived();
          await fault.until;
        }
        const { status, json } = pulls.answer(request.method ?? "", (request.url ?? "").slice(api.length), body);
        answer(status, json);
      });
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    remote: `${url}/team/project.git`,
    repository,
    pulls,
    faults,
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

/** Lets the work succeed, but responds with a failure. */
function hidden(response: ServerResponse, status: number): ServerResponse {
  return new Proxy(response, {
    get(target, name) {
      if (name === "writeHead") return () => ({ end: () => target.writeHead(status).end() });
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}
