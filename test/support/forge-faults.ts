import type { IncomingMessage, ServerResponse } from "node:http";

/** What a forge may do wrong. `after` does the work and responds with a failure. */
export type Fault =
  | { kind: "status"; status: number; headers?: Record<string, string>; body?: string }
  | { kind: "after"; status: number }
  /** Does the work only after `until` resolves. For the API only. */
  | { kind: "held"; arrived(): void; until: Promise<void> }
  | { kind: "reset" }
  | { kind: "huge" }
  /** Accepts the request and never responds. */
  | { kind: "silent" }
  /** Reports success without doing anything. */
  | { kind: "lie"; status: number; body: string; contentType?: string };

export interface Faults {
  /** Plans a fault for this many requests that match (`METHOD /path`). */
  add(match: RegExp, fault: Fault, times?: number): void;
  /** Returns the next fault for this request and uses it up. */
  take(request: IncomingMessage): Fault | null;
}

export function createFaults(): Faults {
  const planned: { match: RegExp; fault: Fault; left: number }[] = [];
  return {
    add: (match, fault, times = 1) => void planned.push({ match, fault, left: times }),
    take(request) {
      const line = `${request.method} ${request.url}`;
      const found = planned.find(({ match, left }) => left > 0 && match.test(line));
      if (found === undefined) return null;
      found.left -= 1;
      return found.fault;
    },
  };
}

/** Responds with the fault instead of doing the work. Returns false for a fault that needs the work. */
export function answerFault(fault: Fault, request: IncomingMessage, response: ServerResponse): boolean {
  switch (fault.kind) {
    case "after":
    case "held":
      return false;
    case "reset":
      request.socket.destroy();
      return true;
    case "silent":
      return true;
    case "huge":
      response.writeHead(200, { "content-type": "application/json" });
      for (let piece = 0; piece < 80; piece++) response.write("x".repeat(1024 * 1024));
      response.end();
      return true;
    case "lie":
      response.writeHead(fault.status, { "content-type": fault.contentType ?? "application/json" }).end(fault.body);
      return true;
    case "status":
      response
        .writeHead(fault.status, { "content-type": "application/json", ...fault.headers })
        .end(fault.body ?? JSON.stringify({ message: "a fault of the test" }));
      return true;
  }
}
