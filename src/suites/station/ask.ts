import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";

/** Where requests go. */
export interface Target {
  url: string;
}

export interface Answer {
  /** 0 where the connection failed or nothing came in time. */
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Why there is no answer. */
  failed: string | null;
  tookMs: number;
}

export interface Ask {
  method?: string;
  token?: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** The address of the loopback range that it comes from. */
  from?: string;
  timeoutMs?: number;
}

export const ANSWER_MS = 10_000;
const TEXT_BYTES_MAX = 1024 * 1024;

/** One request on its own connection. Never throws: what fails is part of the observation. */
export function ask(target: Target, path: string, given: Ask = {}): Promise<Answer> {
  const { method = given.body === undefined ? "GET" : "POST", token, body, headers = {}, from, timeoutMs = ANSWER_MS } = given;
  const began = performance.now();
  return new Promise((resolve) => {
    const end = (answer: Partial<Answer>) =>
      resolve({ status: 0, headers: {}, text: "", failed: null, tookMs: performance.now() - began, ...answer });
    const asked = request(`${target.url}${path}`, {
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
    asked.once("error", (error: NodeJS.ErrnoException) => end({ failed: error.code ?? error.name }));
    asked.once("response", (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes <= TEXT_BYTES_MAX) parts.push(part);
      });
      const told = { status: answer.statusCode ?? 0, headers: answer.headers };
      answer.once("error", (error: NodeJS.ErrnoException) => end({ ...told, failed: error.code ?? error.name }));
      answer.once("end", () => end({ ...told, text: Buffer.concat(parts).toString() }));
    });
    asked.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
  });
}

/** Sends bytes as they are, and gives all that came back until the connection ended or `forMs` had passed. */
export function sendRaw(target: Target, text: string, { forMs = 3_000 }: { forMs?: number } = {}): Promise<string> {
  const { hostname, port } = new URL(target.url);
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(text));
    const timer = setTimeout(() => socket.destroy(), forMs);
    socket.on("data", (part) => {
      heard = (heard + part.toString("latin1")).slice(0, TEXT_BYTES_MAX);
    });
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(heard);
    });
  });
}

export const json = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
};

/** Asks for the station's health again and again while `work` runs: the slowest answer, and how many never came. */
export async function healthDuring(target: Target, work: Promise<unknown>): Promise<{ slowestMs: number; unanswered: number }> {
  let isOver = false;
  void work
    .catch(() => undefined)
    .finally(() => {
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
