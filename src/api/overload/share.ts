import type { RequestClass } from "./request-class.ts";

/**
 * `share`: this caller has too many requests waiting. `overload`: the request waited too long, or too many others wait.
 */
export interface Refusal {
  why: "share" | "overload";
  retryAfterSeconds: number;
}

export interface Submission {
  kind: RequestClass;
  /** The share that it counts against: an owner or an address. */
  key: string;
  /** Call `done` when the request was answered. */
  start(done: () => void): void;
  refuse(refusal: Refusal): void;
}

export interface Waiting extends Submission {
  sinceMs: number;
  isOut: boolean;
}

export interface Share {
  queues: Record<RequestClass, Waiting[]>;
  count: number;
  /** Since when it has had waiting requests. */
  sinceMs: number;
  /** Its usage so far, as in start-time fair queueing. */
  used: number;
}

export const emptyQueues = (): Share["queues"] => ({ vital: [], control: [], work: [], list: [] });

/** Takes the next request: vital and control requests first, then the most urgent request of the least used share. */
export function nextOf(shares: ReadonlyMap<string, Share>): { share: Share; item: Waiting } {
  for (const kinds of [["vital"], ["control"], ["work", "list"]] as const) {
    let best: { share: Share; queue: Waiting[] } | undefined;
    for (const share of shares.values()) {
      if (best !== undefined && best.share.used <= share.used) continue;
      const queue = kinds.map((kind) => withoutGone(share.queues[kind])).find((each) => each.length > 0);
      if (queue !== undefined) best = { share, queue };
    }
    if (best !== undefined) return { share: best.share, item: best.queue.shift() as Waiting };
  }
  throw new Error("no request is waiting");
}

function withoutGone(queue: Waiting[]): Waiting[] {
  while (queue[0]?.isOut) queue.shift();
  return queue;
}
