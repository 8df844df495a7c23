import { CaissonError } from "../../contract/error/error.ts";
import type { RequestHead } from "../http/head.ts";
import { headerValue } from "../http/headers.ts";
import type { AnswerVerdict } from "../http/relay-options.ts";
import { type ListeningPort, onePerPort } from "./watch-ports.ts";

const PORTS_SHOWN_MAX = 50;
const RELOAD_S = 2;
const noStore = ["Cache-Control", "no-store"] as const;

/**
 * The page for a caller without the token. It reveals neither anything about the sandbox nor how close a token was, and
 * closes the connection.
 */
export const refusedPage: AnswerVerdict = {
  kind: "answer",
  status: 401,
  headers: [["WWW-Authenticate", 'Caisson realm="preview"'], noStore],
  body: "This preview of a sandbox port needs its token. Use the whole URL that `caisson open` printed.\n",
  close: true,
};

/** For a caller whose address already uses its share of the preview's connections. */
export const busyPage: AnswerVerdict = {
  kind: "answer",
  status: 429,
  headers: [["Retry-After", "1"], noStore],
  body: "Your address has too many connections to this preview.\n",
  close: true,
};

export function enterPage(options: { path: string; cookie: string }): AnswerVerdict {
  // A path that starts with two slashes would lead to another host.
  const location = options.path.startsWith("//") ? `/.${options.path}` : options.path;
  return { kind: "answer", status: 302, headers: [["Location", location], ["Set-Cookie", options.cookie], noStore], body: "" };
}

/** Returns the page for a port that cannot be reached. In a browser it reloads automatically. */
export function unreachablePage(
  head: RequestHead,
  options: { port: number; error: unknown; listeners: readonly ListeningPort[] | null },
): AnswerVerdict {
  const { port, error } = options;
  const isAbsent = error instanceof CaissonError && error.code === "unavailable";
  const what = isAbsent
    ? `Nothing listens on port ${port} of the sandbox.`
    : `Port ${port} of the sandbox cannot be reached: ${textOf(error)}`;
  const lines = [what, ...(options.listeners === null ? [] : [listening(options.listeners)])];
  const wantsPage = headerValue(head, "accept")?.includes("text/html") === true;
  return {
    kind: "answer",
    status: 502,
    headers: [["Content-Type", `text/${wantsPage ? "html" : "plain"}; charset=utf-8`], noStore],
    body: wantsPage ? page(lines) : `${lines.join("\n")}\n`,
  };
}

function listening(listeners: readonly ListeningPort[]): string {
  const ports = [...onePerPort(listeners).keys()].slice(0, PORTS_SHOWN_MAX);
  return ports.length === 0 ? "Nothing is listening yet." : `Listening ports: ${ports.join(", ")}.`;
}

function page(lines: readonly string[]): string {
  const paragraphs = lines.map((line) => `<p>${line.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</p>`).join("");
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="${RELOAD_S}"><title>Not reachable yet</title><body style="font: 16px sans-serif; margin: 3em">${paragraphs}</body>\n`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
