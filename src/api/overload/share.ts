import type { RequestClass } from "./request-class.ts";

/** `share`: this caller has too many waiting. `overload`: it waited for too long, or too many others wait. */
export interface Refusal {
  why: "share" | "overload";
  retryAfterSeconds: number;
}

export interface Submission {
  kind: RequestClass;
  /** Whose share it counts against: an owner, or an address. */
  key: string;
  /** `done` is called when it was answered. */
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
  /** Since when something of it waits. */
  sinceMs: number;
  /** What it has had, as start-time fair queueing counts it. */
  used: number;
}

export const emptyQueues = (): Share["queues"] => ({ vital: [], control: [], work: [], list: [] });

/** Vital ones and control before all others; then whose share is least used, and of that the most urgent. */
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
  throw new Error("no request waits");
}

function withoutGone(queue: Waiting[]): Waiting[] {
  while (queue[0]?.isOut) queue.shift();
  return queue;
}
