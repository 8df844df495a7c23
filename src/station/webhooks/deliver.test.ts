import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { webhookEventsDefault } from "../../contract/webhook/webhook-verbs.ts";
import { isMeant } from "./cloud-event.ts";
import { type DeliverParts, deliverAll } from "./deliver.ts";
import type { WebhookStore } from "./webhook-store.ts";

const full = new Error("the disk is full");
let defects: unknown[];
/** How many times the events were followed, in total and at this moment. */
let follows: { begun: number; open: number };
let end: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  [defects, follows, end] = [[], { begun: 0, open: 0 }, new AbortController()];
});
afterEach(() => vi.useRealTimers());

/** Follows a feed without events. */
async function* allEvents({ signal }: { signal: AbortSignal }) {
  follows.begun += 1;
  follows.open += 1;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  follows.open -= 1;
}

function deliver(nextRetry: () => unknown, more: { keep?: unknown; events?: unknown } = {}): Promise<void> {
  const record = { id: "whk_a", paused: null, reached: 0, view: {} };
  const store = { all: () => [record], nextRetry, keep: more.keep } as unknown as WebhookStore;
  const stationFor = () => ({ runs: { allEvents, events: more.events } }) as unknown as ReturnType<DeliverParts["stationFor"]>;
  const post = async () => ({ error: "unreachable" });
  return deliverAll({
    store,
    stationFor,
    post,
    now: Date.now,
    woken: new Set(),
    onDefect: (error) => defects.push(error),
    signal: end.signal,
  });
}

describe("deliverAll", () => {
  it("stops a webhook's work if part of it fails, and restarts it with backoff", async () => {
    const delivering = deliver(() => {
      throw full;
    });
    await vi.advanceTimersByTimeAsync(1_500);
    expect([follows, defects]).toEqual([{ begun: 1, open: 0 }, [full]]);
    await vi.advanceTimersByTimeAsync(28_500);
    expect(follows.begun).toBeGreaterThan(2);
    expect(follows.begun).toBeLessThan(6);
    expect(defects).toHaveLength(follows.begun);
    end.abort();
    await delivering;
    expect(follows.open).toBe(0);
  });

  it("retries a delivery whose event could not be read", async () => {
    const keep = vi.fn();
    const busy = new CaissonError("busy", "the log is busy");
    const due = { run: "run_a", seq: 1, position: 1, attempts: 1, state: "retrying", nextAt: new Date(0).toISOString() };
    const events = () => {
      throw busy;
    };
    const delivering = deliver(() => due, { keep, events });
    await vi.advanceTimersByTimeAsync(1_500);
    expect([defects, keep.mock.calls]).toEqual([[busy], []]);
    end.abort();
    await delivering;
  });

  it("continues if nothing fails", async () => {
    const delivering = deliver(() => null);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([follows, defects]).toEqual([{ begun: 1, open: 1 }, []]);
    end.abort();
    await delivering;
    expect(follows.open).toBe(0);
  });
});

describe("a webhook without an event list", () => {
  it("receives every event that needs a person", () => {
    for (const type of ["health.escalated", "permission.asked", "run.ended"]) expect(isMeant(webhookEventsDefault, type), type).toBe(true);
    expect(isMeant(webhookEventsDefault, "model.streamed")).toBe(false);
  });
});
