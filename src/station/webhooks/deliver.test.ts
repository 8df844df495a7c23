import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { webhookEventsDefault } from "../../contract/webhook-verbs.ts";
import { isMeant } from "./cloud-event.ts";
import { type DeliverParts, deliverAll } from "./deliver.ts";
import type { WebhookStore } from "./webhook-store.ts";

const full = new Error("the disk is full");
let defects: unknown[];
/** How many times the events were followed, and by how many at this moment. */
let follows: { begun: number; open: number };
let end: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  [defects, follows, end] = [[], { begun: 0, open: 0 }, new AbortController()];
});
afterEach(() => vi.useRealTimers());

/** Follows events of which none comes. */
async function* allEvents({ signal }: { signal: AbortSignal }) {
  follows.begun += 1;
  follows.open += 1;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  follows.open -= 1;
}

function deliver(nextRetry: () => null): Promise<void> {
  const store = { all: () => [{ id: "whk_a", paused: null, reached: 0, view: {} }], nextRetry } as unknown as WebhookStore;
  const stationFor = () => ({ runs: { allEvents } }) as unknown as ReturnType<DeliverParts["stationFor"]>;
  const post = async () => ({ error: "nobody posts" });
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
  it("ends all of a webhook's work when part of it failed, and begins again after ever longer pauses", async () => {
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

  it("goes on where nothing fails", async () => {
    const delivering = deliver(() => null);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([follows, defects]).toEqual([{ begun: 1, open: 1 }, []]);
    end.abort();
    await delivering;
    expect(follows.open).toBe(0);
  });
});

describe("a webhook that asked for nothing in particular", () => {
  it("is told what is left to a person, of whatever it is", () => {
    for (const type of ["health.escalated", "permission.asked", "run.ended"]) expect(isMeant(webhookEventsDefault, type), type).toBe(true);
    expect(isMeant(webhookEventsDefault, "model.streamed")).toBe(false);
  });
});
