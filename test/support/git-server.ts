import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface GitServer extends AsyncDisposable {
  url: string;
  /** Since the last call. */
  requests(): { method: string; path: string; authorization: string | undefined }[];
}

/** The repositories of a folder over HTTP, as git's own server program serves them. */
export async function startGitServer(folder: string, options: { password?: string } = {}): Promise<GitServer> {
  let seen: ReturnType<GitServer["requests"]> = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    const { authorization } = request.headers;
    seen.push({ method: request.method ?? "", path: url.pathname, authorization });
    const wanted = options.password === undefined ? undefined : `Basic ${Buffer.from(options.password).toString("base64")}`;
    if (wanted !== undefined && authorization !== wanted) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("who are you?");
      return;
    }
    const child = spawn("git", ["http-backend"], {
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        PATH_INFO: decodeURIComponent(url.pathname),
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        REMOTE_ADDR: "127.0.0.1",
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    request.pipe(child.stdin);
    child.stdin.on("error", () => undefined);
    const pieces: Buffer[] = [];
    child.stdout.on("data", (data: Buffer) => pieces.push(data));
    child.once("close", () => {
      const all = Buffer.concat(pieces);
      const end = all.indexOf("\r\n\r\n");
      const headers = all
        .toString("latin1", 0, end)
        .split("\r\n")
        .map((line) => line.split(/: */, 2) as [string, string]);
      const status = Number(headers.find(([name]) => name.toLowerCase() === "status")?.[1]?.slice(0, 3) ?? 200);
      response
        .writeHead(status, Object.fromEntries(headers.filter(([name]) => name.toLowerCase() !== "status")))
        .end(all.subarray(end + 4));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
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
