import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { ignore, jsonOrNull } from "../../lib/failures.ts";

/** The server that requests go to. */
export interface Target {
  url: string;
}

export interface Answer {
  /** 0 if the connection failed or no answer arrived in time. */
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Why there is no answer, or null. */
  failed: string | null;
  tookMs: number;
}

export interface Ask {
  method?: string;
  token?: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** The loopback address from which the request is sent. */
  from?: string;
  timeoutMs?: number;
}

export const ANSWER_MS = 10_000;
const TEXT_BYTES_MAX = 1024 * 1024;

/** Sends one request on its own connection. Never throws: a failure is part of the observation. */
export function ask(target: Target, path: string, options: Ask = {}): Promise<Answer> {
  const { method = options.body === undefined ? "GET" : "POST", token, body, headers = {}, from, timeoutMs = ANSWER_MS } = options;
  const began = performance.now();
  return new Promise((resolve) => {
    const end = (answer: Partial<Answer>) =>
      resolve({ status: 0, headers: {}, text: "", failed: null, tookMs: performance.now() - began, ...answer });
    const clientRequest = request(`${target.url}${path}`, {
      method,
      agent: false,
      headers: {
        connection: "close",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      signal: AbortSignal.timeout(timeoutMs),
      ...(from === undefined ? {} : { localAddress: from }),
    });
    clientRequest.once("error", (error: NodeJS.ErrnoException) => end({ failed: error.code ?? error.name }));
    clientRequest.once("response", (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes <= TEXT_BYTES_MAX) parts.push(part);
      });
      const head = { status: answer.statusCode ?? 0, headers: answer.headers };
      answer.once("error", (error: NodeJS.ErrnoException) => end({ ...head, failed: error.code ?? error.name }));
      answer.once("end", () => end({ ...head, text: Buffer.concat(parts).toString() }));
    });
    clientRequest.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
  });
}

/** Sends raw bytes, and returns everything received until the connection ended or `forMs` had passed. */
export function sendRaw(target: Target, text: string, { forMs = 3_000 }: { forMs?: number } = {}): Promise<string> {
  const { hostname, port } = new URL(target.url);
  return new Promise((resolve) => {
    let reply = "";
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(text));
    const timer = setTimeout(() => socket.destroy(), forMs);
    socket.on("data", (part) => {
      reply = (reply + part.toString("latin1")).slice(0, TEXT_BYTES_MAX);
    });
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(reply);
    });
  });
}

export const json = (text: string): Record<string, unknown> => {
  const value = jsonOrNull(text);
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
};

/** Polls the station's health while `work` runs. Returns the slowest answer and the number of missing answers. */
export async function healthDuring(target: Target, work: Promise<unknown>): Promise<{ slowestMs: number; unanswered: number }> {
  let isOver = false;
  void ignore(work, "its caller awaits it").finally(() => {
    isOver = true;
  });
  let slowestMs = 0;
  let unanswered = 0;
  do {
    const { status, tookMs } = await ask(target, "/healthz");
    slowestMs = Math.max(slowestMs, Math.round(tookMs));
    if (status !== 200) unanswered += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (!isOver);
  return { slowestMs, unanswered };
}
