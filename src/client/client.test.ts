import { connect as connectSocket, createServer, type Server, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import type { AgentVerbs } from "../verbs/agents.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { SandboxVerbs } from "../verbs/sandboxes.ts";
import type { SessionVerbs } from "../verbs/sessions.ts";
import { type Client, connect } from "./connect.ts";

const { server, token, endedRun, station } = useServer();

async function client(scope: "read" | "run" | "admin" = "run"): Promise<Client> {
  return connect({ url: server().status.url, token: await token(scope) });
}

async function numbersOf(events: AsyncIterable<{ seq: number }>): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { seq } of events) numbers.push(seq);
  return numbers;
}

/** Starts a proxy between client and station that breaks each connection after a number of answer bytes. */
async function breakingProxy(
  target: string,
  { everyBytes }: { everyBytes: number },
): Promise<Server & { url: string; broken: () => number }> {
  let broken = 0;
  const port = Number(new URL(target).port);
  const proxy = createServer((near: Socket) => {
    const far = connectSocket(port, "127.0.0.1");
    let left = everyBytes;
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      near.write(data.subarray(0, left));
      left -= data.length;
      if (left > 0) return;
      broken += 1;
      near.end();
      far.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port: own } = proxy.address() as { port: number };
  return Object.assign(proxy, { url: `http://127.0.0.1:${own}`, broken: () => broken });
}

describe("the client", () => {
  test("has the same verbs as the station", async () => {
    const { runs, sessions, agents, sandboxes } = await client();
    // Checked by the compiler: a program written for one works with the other.
    const sameRuns: Pick<RunVerbs, "get" | "events"> & { start(request: Parameters<RunVerbs["start"]>[0]): ReturnType<RunVerbs["start"]> } =
      runs;
    const sameSessions: Pick<SessionVerbs, "get" | "list"> = sessions;
    const sameAgents: Pick<AgentVerbs, "list"> = agents;
    const sameSandboxes: Pick<SandboxVerbs, "get" | "stats" | "snapshots"> = sandboxes;
    expect([sameRuns, sameSessions, sameAgents, sameSandboxes]).not.toContain(undefined);
    expect(await sameSessions.list()).toEqual({ sessions: [], damaged: [], next: null });
    expect((await sameAgents.list()).map(({ name }) => name)).toContain("coder");
  });

  test("passes on the signal of a call with only a leading argument", async () => {
    const { machine } = await client("read");
    const run = await endedRun();
    expect(await machine.find(run)).toMatchObject({ id: run });
    await expect(machine.find(run, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
  });

  test("creates a sandbox, works in it, and removes it", async () => {
    const { sandboxes, files } = await client();
    const { id } = await sandboxes.create({ spec: { labels: { for: "a test" } } });
    expect(await files.write(id, { path: "/workspace/a" }, new TextEncoder().encode("from outside"))).toEqual({ bytes: 12 });
    const { stdout, ended } = await sandboxes.exec(id, { argv: ["cat", "/workspace/a"] });
    expect([stdout.text, ended.kind]).toEqual(["from outside", "exited"]);
    expect(await new Response(await files.read(id, { path: "/workspace/a" })).text()).toBe("from outside");
    const seen: string[] = [];
    for await (const event of sandboxes.execEvents(id, { argv: ["echo", "live"] }))
      seen.push(event.type === "output" ? event.text : event.ended.kind);
    expect(seen).toEqual(["live\n", "exited"]);
    await sandboxes.remove(id);
    expect((await sandboxes.list()).sandboxes).toEqual([]);
  });

  test("throws the station's errors, and `unavailable` without a station", async () => {
    const { sandboxes, tokens } = await client();
    await expect(sandboxes.get("sb_aaaaaaaaaaaa")).rejects.toMatchObject({ name: "CaissonError", code: "not_found" });
    await expect(tokens.list()).rejects.toMatchObject({ code: "denied", hint: expect.stringContaining("--scope admin") });
    await expect(connect({ url: "http://127.0.0.1:1" }).status()).rejects.toMatchObject({ code: "unavailable" });
    expect(() => connect({ url: "station" })).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  test("follows a run over breaking connections without losing or repeating an event", async () => {
    const run = await endedRun();
    const wanted = await numbersOf(station().runs.events(run));
    // Slightly more than the longest event, so each connection delivers at least one.
    let everyBytes = 0;
    for await (const event of station().runs.events(run)) everyBytes = Math.max(everyBytes, JSON.stringify(event).length + 1000);
    const proxy = await breakingProxy(server().status.url, { everyBytes });
    try {
      const { runs } = connect({ url: proxy.url, token: await token("read") });
      const seen = await numbersOf(runs.events(run, { follow: true }));
      expect(seen).toEqual(wanted);
      expect(proxy.broken()).toBeGreaterThan(0);
    } finally {
      proxy.close();
    }
  });

  test("iterates over pages of events, and stops with the signal", async () => {
    const { runs } = await client("read");
    const run = await endedRun();
    expect(await numbersOf(runs.events(run))).toEqual(await numbersOf(station().runs.events(run)));
    const stop = new AbortController();
    const all = runs.allEvents({ afterPosition: 0, signal: stop.signal });
    const first = await all.next();
    expect(first.value).toMatchObject({ run, seq: 1 });
    stop.abort();
    expect(await all.next().catch(() => ({ done: true }))).toMatchObject({ done: true });
  });
});
