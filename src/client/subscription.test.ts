import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Connection } from "./request.ts";
import type { AnySocket } from "./stream-socket.ts";
import { subscribe } from "./subscription.ts";

const BROKEN = 1006;
const CUT_AFTER_MS = 1_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A station without events. Each of its connections is cut after a second, or refused. */
function station(connections: readonly ("cut" | "refused")[]) {
  let opened = 0;
  const openSocket = (): AnySocket => {
    const what = connections[opened];
    opened += 1;
    const dispatch = (name: "onopen" | "onclose" | "onmessage", payload: object) =>
      (socket[name] as ((event: object) => void) | null)?.(payload);
    const socket: AnySocket = {
      binaryType: "",
      ...{ onopen: null, onmessage: null, onerror: null, onclose: null },
      send: () => dispatch("onmessage", { data: JSON.stringify({ type: "subscribed", position: 0 }) }),
      close: (code = BROKEN) => dispatch("onclose", { code }),
    };
    setTimeout(() => dispatch(what === "refused" ? "onclose" : "onopen", { code: BROKEN }), 1);
    if (what === "cut") setTimeout(() => dispatch("onclose", { code: BROKEN }), CUT_AFTER_MS);
    return socket;
  };
  const fetch = async () => {
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  };
  return { to: { url: "http://station.test", token: undefined, fetch, openSocket } as Connection, opened: () => opened };
}

/** Subscribes, and returns the outcome once all connections were opened or the client gave up. */
async function follow({ to, opened }: ReturnType<typeof station>, count: number): Promise<{ failure: unknown; opened: number }> {
  const subscribing = subscribe(to);
  await vi.advanceTimersByTimeAsync(1);
  const subscription = await subscribing;
  let failure: unknown = null;
  const reading = (async () => {
    for await (const _ of subscription);
  })().catch((error: unknown) => {
    failure = error;
  });
  for (let n = 0; n < 200 && opened() < count && failure === null; n += 1) await vi.advanceTimersByTimeAsync(CUT_AFTER_MS);
  subscription.close();
  await vi.advanceTimersByTimeAsync(1);
  await reading;
  return { failure, opened: opened() };
}

describe("subscribe", () => {
  it("keeps following a live station, however often a quiet connection is cut", async () => {
    const connections = [...Array<"cut">(15).fill("cut"), "refused" as const, ...Array<"cut">(15).fill("cut")];
    expect(await follow(station(connections), 30)).toEqual({ failure: null, opened: 30 });
  });

  it("gives up on a station after some failed attempts", async () => {
    const { failure } = await follow(station(["cut", ...Array<"refused">(30).fill("refused")]), 30);
    expect(failure).toMatchObject({ code: "unavailable" });
  });
});
