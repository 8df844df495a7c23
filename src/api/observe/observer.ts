import { randomUUID } from "node:crypto";
import type { Caller } from "../call.ts";

/** One request as far as it is known, for those who watch; never what it carries. */
export interface SeenRequest {
  /** As the caller named it, or made here. */
  readonly id: string;
  /** Its name in the table of routes; `none` for what is not there. */
  route: string;
  /** Null before it was let in. */
  caller: Caller | null;
  /** Of what it starts: the caller's, or that of the span of the request itself. */
  readonly traceparent: string | null;
}

/** A request that was answered; of a stream, its beginning was. */
export interface AnsweredRequest extends Readonly<SeenRequest> {
  method: string;
  status: number;
  durationMs: number;
  /** Whether the answer goes on. */
  streams: boolean;
}

/** The span of a request, where there is tracing. */
export interface RequestSpans {
  begin(request: { method: string; traceparent: string | null }): { traceparent: string; end(answered: AnsweredRequest): void };
}

export interface Observer {
  /** Answers a request, and tells all who watch. */
  watch(request: Request, answer: (seen: SeenRequest) => Promise<Response>): Promise<Response>;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/;
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Whoever watches cannot disturb a request: what a listener throws goes to `onDefect`. */
export function createObserver(options: {
  listeners: readonly ((answered: AnsweredRequest) => void)[];
  spans?: RequestSpans;
  onDefect: (error: unknown) => void;
}): Observer {
  return {
    async watch(request, answer) {
      const startedMs = performance.now();
      const given = matching(request.headers.get("traceparent"), TRACEPARENT);
      // What is a caller's own word for it is no label.
      const method = methods.has(request.method) ? request.method : "other";
      const span = options.spans?.begin({ method, traceparent: given });
      const id = matching(request.headers.get("x-request-id"), REQUEST_ID) ?? randomUUID();
      const seen: SeenRequest = { id, route: "none", caller: null, traceparent: span?.traceparent ?? given };
      const response = await answer(seen);
      response.headers.set("x-request-id", id);
      const streams = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      const answered = { ...seen, method, status: response.status, durationMs: performance.now() - startedMs, streams };
      try {
        span?.end(answered);
        for (const listener of options.listeners) listener(answered);
      } catch (error) {
        options.onDefect(error);
      }
      return response;
    },
  };
}

function matching(text: string | null, pattern: RegExp): string | null {
  return text !== null && pattern.test(text) ? text : null;
}
