import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useCaisson } from "./caisson-process.ts";

const { run, home } = useCaisson();
let station: { url: string; pid: number; token: string };

beforeAll(async () => {
  // The default configuration with shorter times.
  mkdirSync(home(), { mode: 0o700 });
  writeFileSync(join(home(), "config.json"), JSON.stringify({ health: { runningTtlMs: 6000, idleTtlMs: 6000, cooldownMs: 1000 } }));
  station = JSON.parse((await run(["up", "--detach", "--port", "0", "--json"])).text);
});
// Runs before the station's home is removed, since it is registered later.
afterAll(() => run(["down"]));

const createSandbox = async (...options: string[]) => (await run(["sandbox", "create", "--no-workspace", ...options])).text.trim();
const guestOf = (id: string) => Number(readFileSync(join(home(), "sandboxes", id, "guest.pid"), "utf8"));
const inside = async (id: string, script: string) => (await run(["exec", "-s", id, "--", "sh", "-c", script])).text;

describe("a stopped guest", () => {
  test("is restarted on the sandbox's own files, with an incident that explains it", async () => {
    const id = await createSandbox();
    await inside(id, "echo kept > /workspace/a; echo home > ~/b");
    const before = guestOf(id);
    process.kill(before, "SIGSTOP");
    const incidents = async () => JSON.parse((await run(["incident", "ls", "--json"])).text);
    await expect.poll(incidents, { interval: 500 }).toMatchObject([{ outcome: expect.stringMatching(/^restarted/) }]);
    expect(await inside(id, "cat /workspace/a ~/b")).toBe("kept\nhome\n");
    expect(guestOf(id)).not.toBe(before);
    const [{ id: incident }] = await incidents();
    const report = await run(["incident", "show", incident]);
    expect(report.text).toContain("it was stopped (SIGSTOP)");
    expect(report.text).toMatch(new RegExp(`${before} T .*guest init`));
    await expect
      .poll(async () => (await run(["health", "--json"])).text, { interval: 200 })
      .toMatch(new RegExp(`"id":"${id}"[^}]*},"run":null,"level":"ok"[^}]*"restarts":1`));
    expect((await run(["sandbox", "rm", id])).code).toBe(0);
  });
});

describe("programs in a sandbox with station access", () => {
  test("reach their four calls through the sandbox's network, and no other route", async () => {
    const id = await createSandbox("--station-access");
    const call = (method: string, path: string, more = "") =>
      `curl -sS -o /tmp/answer -w '%{http_code} ' -X ${method} -H "Authorization: Bearer $CAISSON_SANDBOX_TOKEN" ${more} $CAISSON_SANDBOX_URL${path}; cat /tmp/answer; echo`;
    expect(await inside(id, call("POST", "/v1/inside/heartbeat"))).toBe('200 {"control":"resume"}\n');
    const event = call("POST", "/v1/inside/events", `-H 'content-type: application/json' -d '{"type":"task.done","data":{"files":2}}'`);
    // The first event is the sandbox's creation, which the station records without a request.
    const headers = { authorization: `Bearer ${station.token}` };
    const events = async () => {
      const answer = await fetch(`${station.url}/v1/sandboxes/${id}/events`, { headers });
      return ((await answer.json()) as { events: unknown[] }).events;
    };
    await expect.poll(events).toMatchObject([{ type: "sandbox.created" }]);
    expect(await inside(id, event)).toBe('201 {"seq":2}\n');
    expect(await inside(id, call("PUT", "/v1/inside/artifacts/report.txt", "--data-binary 'all well'"))).toMatch(/^201 /);
    expect((await run(["artifacts", id, "report.txt"])).text).toBe("all well");
    await run(["sandbox", "tell", id, "hello inside"]);
    expect(await inside(id, call("POST", "/v1/inside/messages"))).toContain('"text":"hello inside"');
    expect(await inside(id, call("GET", "/v1/status"))).toMatch(/^404 /);
    // From outside, the token reaches the same calls, and none after the sandbox is removed.
    const token = (await inside(id, "echo $CAISSON_SANDBOX_TOKEN")).trim();
    const ask = (path: string, method = "POST") =>
      fetch(`${station.url}${path}`, { method, headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
    expect(await ask("/v1/inside/heartbeat")).toBe(200);
    expect(await ask("/v1/sandboxes", "GET")).toBe(403);
    const other = await createSandbox("--station-access");
    expect(await inside(other, call("POST", "/v1/inside/heartbeat").replace("$CAISSON_SANDBOX_TOKEN", token))).toMatch(/^401 /);
    for (const each of [id, other]) await run(["sandbox", "rm", each]);
    expect(await ask("/v1/inside/heartbeat")).toBe(401);
  });
});
