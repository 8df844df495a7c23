import type { Arrival } from "../admit.ts";
import { problemAnswer } from "../answer.ts";
import { checkOrigin, type StationNames } from "../gate.ts";
import type { ConsoleFile } from "./console-files.ts";

/** The first path segments of the console's pages. */
const pages: ReadonlySet<string> = new Set([
  ...["", "runs", "work", "workflows", "specs", "ships", "merges", "sandboxes", "start", "inbox", "settings", "welcome"],
]);

/**
 * Allows nothing from other origins and only scripts of the build, since untrusted code wrote what the pages show.
 * Terminals and editors add inline style sheets. Previews are frames with a separate origin.
 */
const policyWith = (previews: string | null): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    `frame-src http://*.localhost:* http://127.0.0.1:*${previews === null ? "" : ` ${previews}`}`,
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

const commonHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
};

const notBuilt = `This station has no built console. The API under /v1 works without it.

In a clone, scripts/setup builds it. An installed package has it in dist/console.
`;

/**
 * Serves the console's files, which are the same for every client and contain no user data. Returns null for other
 * paths.
 */
export type ConsolePages = (request: Request, arrival: Arrival) => Promise<Response | null>;

export function createConsolePages({ folder, names }: { folder: string; names: StationNames }): ConsolePages {
  const headers = { "content-security-policy": policyWith(names.previews?.pattern ?? null), ...commonHeaders };
  let reading: Promise<ReadonlyMap<string, ConsoleFile>> | undefined;
  return async (request, arrival) => {
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    const { pathname } = new URL(request.url);
    const isKnown = pages.has(pathname.split("/")[1] ?? "");
    const isPage = isKnown || isMistyped(request, pathname);
    if (!isPage && !isAsset(pathname)) return null;
    try {
      checkOrigin({ headers: request.headers, via: arrival.via, names });
    } catch (error) {
      return problemAnswer(error, { request, onDefect: () => {} });
    }
    reading ??= import("./console-files.ts").then(({ readConsoleFiles }) => readConsoleFiles(folder));
    const files = await reading;
    const file = files.get(isPage ? "/index.html" : pathname);
    if (file !== undefined) return fileAnswer(file, { request, headers, status: isPage && !isKnown ? 404 : 200 });
    return isPage ? new Response(notBuilt, { status: 503, headers: { "content-type": "text/plain; charset=utf-8" } }) : null;
  };
}

/** Whether a person opened an unknown path: the console then shows a not-found page. Programs get the API's answer. */
function isMistyped({ headers }: Request, pathname: string): boolean {
  const isApi = /^\/(?:v1|mcp)(?:\/|$)/.test(pathname);
  return !isApi && !isAsset(pathname) && (headers.get("accept") ?? "").includes("text/html");
}

/** Whether the path is a file next to the page. Never true for API paths. */
function isAsset(pathname: string): boolean {
  return pathname.startsWith("/assets/") || /^\/[a-z0-9-]+\.(svg|png|ico|webmanifest|js)$/.test(pathname);
}

function fileAnswer(
  file: ConsoleFile,
  { request, headers, status }: { request: Request; headers: Readonly<Record<string, string>>; status: 200 | 404 },
): Response {
  const { bytes, packed, type, etag, isHashed } = file;
  const caching = { etag, "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache" };
  if (status === 200 && request.headers.get("if-none-match") === etag)
    return new Response(null, { status: 304, headers: { ...headers, ...caching } });
  const isPacked = packed !== null && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  const body = isPacked ? packed : bytes;
  const encoding: Record<string, string> = isPacked ? { "content-encoding": "gzip" } : {};
  return new Response(request.method === "HEAD" ? null : body, {
    status,
    headers: { ...headers, ...caching, ...encoding, vary: "accept-encoding", "content-type": type, "content-length": `${body.length}` },
  });
}
