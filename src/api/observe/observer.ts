import { randomUUID } from "node:crypto";
import type { Caller } from "../call.ts";

/** A request as observers see it, without its content. */
export interface SeenRequest {
  /** The caller's id for the request, or a generated one. */
  readonly id: string;
  /** The route name; `none` for an unknown path. */
  route: string;
  /** Null until the caller is admitted. */
  caller: Caller | null;
  /** The trace context for what the request starts: the caller's, or that of the request's own span. */
  readonly traceparent: string | null;
}

/** An answered request. A stream counts as answered when it starts. */
export interface AnsweredRequest extends Readonly<SeenRequest> {
  method: string;
  status: number;
  durationMs: number;
  /** Whether the answer is a stream that continues. */
  streams: boolean;
}

/** Creates the spans of requests, if tracing is enabled. */
export interface RequestSpans {
  begin(request: { method: string; traceparent: string | null }): { traceparent: string; end(answered: AnsweredRequest): void };
}

export interface Observer {
  /** Answers a request, and informs all listeners. */
  watch(request: Request, answer: (summary: SeenRequest) => Promise<Response>): Promise<Response>;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/;
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Creates an observer whose listeners cannot disturb a request: `onDefect` receives what they throw. */
export function createObserver(options: {
  listeners: readonly ((answered: AnsweredRequest) => void)[];
  spans?: RequestSpans;
  onDefect: (error: unknown) => void;
}): Observer {
  return {
    async watch(request, answer) {
      const startedMs = performance.now();
      const parent = matching(request.headers.get("traceparent"), TRACEPARENT);
      // An arbitrary method from a caller must not become a label.
      const method = methods.has(request.method) ? request.method : "other";
      const span = options.spans?.begin({ method, traceparent: parent });
      const id = matching(request.headers.get("x-request-id"), REQUEST_ID) ?? randomUUID();
      const summary: SeenRequest = { id, route: "none", caller: null, traceparent: span?.traceparent ?? parent };
      const response = await answer(summary);
      response.headers.set("x-request-id", id);
      const streams = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      const answered = { ...summary, method, status: response.status, durationMs: performance.now() - startedMs, streams };
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
