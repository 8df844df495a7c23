import type { Problem } from "../contract/api/problem.ts";
import type { ProcessClientMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error.ts";
import { errorOf } from "./request.ts";

type Asked = Extract<ProcessClientMessage, { type: "closeStdin" | "resize" | "signal" | "kill" }>;
interface Pending {
  message: Asked;
  sent: boolean;
  resolve(by: Answered): void;
  reject(error: unknown): void;
}

/** Whether the station did it, or the process had ended before it could. */
type Answered = "station" | "end";

/** What a process is asked to do, until the station says how it went. */
export function createRequests() {
  const pending = new Map<number, Pending>();
  let socket: { send(message: object): void } | null = null;
  let count = 0;
  let isOver: { error: CaissonError | undefined } | null = null;
  const sendAll = () => {
    for (const [request, each] of pending) {
      if (socket === null) return;
      if (each.sent) continue;
      each.sent = true;
      socket.send({ ...each.message, request });
    }
  };
  return {
    async ask(message: Asked): Promise<Answered> {
      // To a process that has ended there is nothing to do.
      if (isOver !== null) return isOver.error === undefined ? "end" : Promise.reject(isOver.error);
      const { promise, resolve, reject } = Promise.withResolvers<Answered>();
      pending.set(count++, { message, sent: false, resolve, reject });
      sendAll();
      return promise;
    },
    answered(request: number, problem: Problem | null): void {
      const asked = pending.get(request);
      pending.delete(request);
      if (problem === null) asked?.resolve("station");
      else asked?.reject(errorOf(problem));
    },
    connect(to: { send(message: object): void }): void {
      socket = to;
      sendAll();
    },
    /** A signal may have come through, and is not sent twice; the others can be. */
    disconnect(): void {
      socket = null;
      for (const [request, each] of pending) {
        if (!each.sent) continue;
        each.sent = false;
        if (each.message.type !== "signal") continue;
        pending.delete(request);
        each.reject(new CaissonError("unavailable", "the connection broke off, and nobody knows whether the signal was sent"));
      }
    },
    finish(error: CaissonError | undefined): void {
      isOver ??= { error };
      for (const { resolve, reject } of pending.values()) error === undefined ? resolve("end") : reject(error);
      pending.clear();
    },
  };
}
