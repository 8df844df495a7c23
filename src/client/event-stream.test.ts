import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { eventData } from "./event-stream.ts";
import type { Answer, Connection } from "./request.ts";

const MINUTE_MS = 60_000;
const encoder = new TextEncoder();
const event = (n: number) => `id: ${n}\nevent: message\ndata: ${n}\n\n`;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

interface Said {
  text: string;
  /** What happens to the connection afterwards. */
  after: "cut" | "silence";
}

/** Creates a station that sends this on each connection; null for one that is refused. */
function station(connections: readonly (Said | null)[]) {
  const lastEventIds: (string | null)[] = [];
  let closed = 0;
  const fetch = async (_: string, { headers }: RequestInit): Promise<Answer> => {
    const reply = connections[lastEventIds.length];
    lastEventIds.push((headers as Record<string, string>)["last-event-id"] ?? null);
    if (reply === null || reply === undefined) throw new Error("refused");
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        controller.enqueue(encoder.encode(`: open\n\n${reply.text}`));
        if (reply.after === "cut") controller.close();
      },
      cancel() {
        closed += 1;
      },
    });
    return { ok: true, status: 200, body, json: async () => null };
  };
  const to = { url: "http://station.test", token: undefined, fetch } as unknown as Connection;
  return { asked: lastEventIds, closed: () => closed, to };
}

async function follow(to: Connection, { resume = true } = {}): Promise<number[]> {
  const seen: number[] = [];
  const following = (async () => {
    for await (const each of eventData<number>(to, "runs.events", { input: { params: { run: "run_a" } }, resume })) seen.push(each);
  })();
  let isOver = false;
  const over = following.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  for (let passed = 0; !isOver && passed < 60; passed += 1) await vi.advanceTimersByTimeAsync(MINUTE_MS / 6);
  if (!isOver) throw new Error("it hangs");
  await over;
  return seen;
}

const end = "event: end\ndata: {}\n\n";

describe("eventData", () => {
  it("drops a silent connection, and resumes at the same event", async () => {
    const {
      to,
      asked: lastEventIds,
      closed,
    } = station([
      { text: event(1), after: "silence" },
      { text: event(2) + end, after: "silence" },
    ]);
    expect(await follow(to)).toEqual([1, 2]);
    expect([lastEventIds, closed()]).toEqual([[null, "1"], 2]);
  });

  it("throws `unavailable` after silence if it cannot resume", async () => {
    const { to } = station([{ text: event(1), after: "silence" }]);
    await expect(follow(to, { resume: false })).rejects.toMatchObject({ code: "unavailable" });
  });

  it("keeps following a live station, however often a quiet stream is cut", async () => {
    const cuts = Array.from({ length: 30 }, () => ({ text: "", after: "cut" as const }));
    const { to } = station([...cuts, { text: event(1) + end, after: "cut" }]);
    expect(await follow(to)).toEqual([1]);
  });

  it("gives up on a station after some failed attempts", async () => {
    const { to, asked: lastEventIds } = station([{ text: event(1), after: "cut" }]);
    await expect(follow(to)).rejects.toMatchObject({ code: "unavailable" });
    expect(lastEventIds.length).toBeGreaterThan(5);
  });
});
