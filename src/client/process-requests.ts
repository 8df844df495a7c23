import type { Problem } from "../contract/api/problem.ts";
import type { ProcessClientMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error/error.ts";
import { errorOf } from "./request.ts";

type ProcessRequest = Extract<ProcessClientMessage, { type: "closeStdin" | "resize" | "signal" | "kill" }>;
interface Pending {
  message: ProcessRequest;
  isSent: boolean;
  resolve(by: Answered): void;
  reject(error: unknown): void;
}

/** Whether the station performed the request, or the process had already ended. */
type Answered = "station" | "end";

/** Tracks requests to a process until the station answers them. */
export function createRequests() {
  const pending = new Map<number, Pending>();
  let socket: { send(message: object): void } | null = null;
  let count = 0;
  let isOver: { error: CaissonError | undefined } | null = null;
  const sendAll = () => {
    for (const [request, each] of pending) {
      if (socket === null) return;
      if (each.isSent) continue;
      each.isSent = true;
      socket.send({ ...each.message, request });
    }
  };
  return {
    async ask(message: ProcessRequest): Promise<Answered> {
      // Requests to a process that has ended have no effect.
      if (isOver !== null) return isOver.error === undefined ? "end" : Promise.reject(isOver.error);
      const { promise, resolve, reject } = Promise.withResolvers<Answered>();
      pending.set(count++, { message, isSent: false, resolve, reject });
      sendAll();
      return promise;
    },
    settle(request: number, problem: Problem | null): void {
      const open = pending.get(request);
      pending.delete(request);
      if (problem === null) open?.resolve("station");
      else open?.reject(errorOf(problem));
    },
    connect(to: { send(message: object): void }): void {
      socket = to;
      sendAll();
    },
    /** A signal may have arrived, so it is not sent again; other requests are. */
    disconnect(): void {
      socket = null;
      for (const [request, each] of pending) {
        if (!each.isSent) continue;
        each.isSent = false;
        if (each.message.type !== "signal") continue;
        pending.delete(request);
        each.reject(new CaissonError("unavailable", "the connection broke off; it is unknown whether the signal was sent"));
      }
    },
    finish(error: CaissonError | undefined): void {
      isOver ??= { error };
      for (const { resolve, reject } of pending.values()) error === undefined ? resolve("end") : reject(error);
      pending.clear();
    },
  };
}
