import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Connection } from "./request.ts";
import type { AnySocket } from "./stream-socket.ts";
import { subscribe } from "./subscription.ts";

const BROKEN = 1006;
const CUT_AFTER_MS = 1_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A station without events, whose connections are each cut after a second, or refused. */
function station(connections: readonly ("cut" | "refused")[]) {
  let opened = 0;
  const openSocket = (): AnySocket => {
    const what = connections[opened];
    opened += 1;
    const told = (name: "onopen" | "onclose" | "onmessage", given: object) => (socket[name] as ((event: object) => void) | null)?.(given);
    const socket: AnySocket = {
      binaryType: "",
      ...{ onopen: null, onmessage: null, onerror: null, onclose: null },
      send: () => told("onmessage", { data: JSON.stringify({ type: "subscribed", position: 0 }) }),
      close: (code = BROKEN) => told("onclose", { code }),
    };
    setTimeout(() => told(what === "refused" ? "onclose" : "onopen", { code: BROKEN }), 1);
    if (what === "cut") setTimeout(() => told("onclose", { code: BROKEN }), CUT_AFTER_MS);
    return socket;
  };
  const fetch = async () => {
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  };
  return { to: { url: "http://station.test", token: undefined, fetch, openSocket } as Connection, opened: () => opened };
}

/** Of a subscription to it, once as many connections were made as are told of or it gave up. */
async function followed({ to, opened }: ReturnType<typeof station>, count: number): Promise<{ failure: unknown; opened: number }> {
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
  it("goes on for as long as the station is there, however often a quiet connection is cut", async () => {
    const connections = [...Array<"cut">(15).fill("cut"), "refused" as const, ...Array<"cut">(15).fill("cut")];
    expect(await followed(station(connections), 30)).toEqual({ failure: null, opened: 30 });
  });

  it("gives up on a station that is not back after some attempts", async () => {
    const { failure } = await followed(station(["cut", ...Array<"refused">(30).fill("refused")]), 30);
    expect(failure).toMatchObject({ code: "unavailable" });
  });
});
