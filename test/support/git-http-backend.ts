import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";

/** Answers a request for a repository in the folder with git's own server program. A request with a `user` may push. */
export function serveGit(options: { folder: string; user?: string | null }, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://x");
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: options.folder,
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
      ...(options.user && { REMOTE_USER: options.user }),
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
    response.writeHead(status, Object.fromEntries(headers.filter(([name]) => name.toLowerCase() !== "status"))).end(all.subarray(end + 4));
  });
}
