import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";
import { insideLimits } from "../contract/inside/inside-verbs.ts";

const { station, server, token, insideToken, ask, post, defects } = useServer();

async function createSandbox(): Promise<{ id: string; as: string }> {
  const { id } = (await (await post("/v1/sandboxes", {})).json()) as { id: string };
  return { id, as: insideToken(id) };
}
const put = (name: string, data: string, as: string) => ask(`/v1/inside/artifacts/${name}`, { method: "PUT", body: data, as });

describe("programs inside, with their sandbox's token", () => {
  test("report events to the sandbox log, without control characters", async () => {
    const { id, as } = await createSandbox();
    const evil = "\u001b]0;owned\u0007\u202eabc\nline";
    const answer = await post("/v1/inside/events", { type: "task.progress", data: { [`k${evil}`]: [evil, 3] } }, { as });
    expect([answer.status, await answer.json()]).toEqual([201, { seq: 1 }]);
    const log = (await (await ask(`/v1/sandboxes/${id}/events`)).json()) as { events: object[] };
    expect(log.events).toMatchObject([
      {
        seq: 1,
        type: "sandbox.reported",
        data: { sandbox: id, type: "task.progress", data: { "k]0;ownedabc\nline": ["]0;ownedabc\nline", 3] } },
      },
    ]);
    for (const type of ["Task", "a b", "../x", "a..b", "", "run.ended\n"]) {
      expect((await post("/v1/inside/events", { type }, { as })).status, type).toBe(400);
    }
    const large = await post("/v1/inside/events", { type: "x", data: "x".repeat(insideLimits.eventBytesMax) }, { as });
    expect(large.status).toBe(413);
  });

  test("are followed live by their owner, who can resume a broken stream", async () => {
    const { id, as } = await createSandbox();
    const client = connect({ url: server().status.url, token: await token("admin") });
    await post("/v1/inside/events", { type: "one" }, { as });
    const abort = new AbortController();
    const types: string[] = [];
    for await (const event of client.inside.follow(id, { fromSeq: 1, signal: abort.signal })) {
      if (event.type === "sandbox.reported") types.push(event.data.type);
      if (types.length === 1) await post("/v1/inside/events", { type: "two" }, { as });
      if (types.length === 2) break;
    }
    expect(types).toEqual(["one", "two"]);
    const page = await ask(`/v1/sandboxes/${id}/events`, { headers: { accept: "text/event-stream", "last-event-id": "1" } });
    const reader = page.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("id: ")) text += (await reader?.read())?.value;
    expect(text).toContain("id: 2");
    await reader?.cancel();
    expect((await ask("/v1/sandboxes/sb_aaaaaaaaaaaa/events", { headers: { accept: "text/event-stream" } })).status).toBe(404);
  });

  test("receive each message of their owner once", async () => {
    const { id, as } = await createSandbox();
    expect((await post(`/v1/sandboxes/${id}/inside`, { text: "one" })).status).toBe(204);
    await post(`/v1/sandboxes/${id}/inside`, { text: "two" });
    expect((await post(`/v1/sandboxes/${id}/inside`, { text: "x".repeat(insideLimits.messageBytesMax + 1) })).status).toBe(400);
    expect(await (await ask(`/v1/sandboxes/${id}/inside`)).json()).toMatchObject({ waiting: 2, lastBeatAt: null });
    const inbox = (await (await post("/v1/inside/messages", {}, { as })).json()) as { messages: { text: string }[] };
    expect(inbox.messages.map(({ text }) => text)).toEqual(["one", "two"]);
    expect(await (await post("/v1/inside/messages", {}, { as })).json()).toEqual({ messages: [] });
  });

  test("send heartbeats, and learn whether to continue", async () => {
    const { id, as } = await createSandbox();
    const beat = async () => await (await post("/v1/inside/heartbeat", {}, { as })).json();
    expect(await beat()).toEqual({ control: "resume" });
    await post(`/v1/sandboxes/${id}/inside`, { control: "abort" });
    expect(await beat()).toEqual({ control: "abort" });
    expect(await (await ask(`/v1/sandboxes/${id}/inside`)).json()).toMatchObject({ control: "abort", lastBeatAt: expect.any(String) });
  });

  test("store files for their owner, atomically", async () => {
    const { id, as } = await createSandbox();
    expect((await put("report.txt", "first", as)).status).toBe(201);
    expect(await (await put("report.txt", "second", as)).json()).toMatchObject({ name: "report.txt", bytes: 6 });
    for (const name of ["..", ".hidden", "%2e%2e%2fx", "a%2fb"]) expect([400, 404], name).toContain((await put(name, "x", as)).status);
    expect(await (await ask(`/v1/artifacts/${id}`)).json()).toMatchObject({ artifacts: [{ name: "report.txt", bytes: 6 }] });
    expect(await (await ask(`/v1/artifacts/${id}/report.txt`)).text()).toBe("second");
    expect((await ask(`/v1/artifacts/${id}/other`)).status).toBe(404);
  });

  test("are rate-limited for each kind of call", async () => {
    const { as } = await createSandbox();
    const statuses: number[] = [];
    for (let call = 0; call < 12; call += 1) statuses.push((await post("/v1/inside/heartbeat", {}, { as })).status);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(200));
    const refused = await post("/v1/inside/heartbeat", {}, { as });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    // Each kind of call and each sandbox is counted separately.
    expect((await post("/v1/inside/messages", {}, { as })).status).toBe(200);
    expect((await post("/v1/inside/heartbeat", {}, { as: (await createSandbox()).as })).status).toBe(200);
  });

  test("act only for their own sandbox", async () => {
    const [mine, other] = [await createSandbox(), await createSandbox()];
    await post(`/v1/sandboxes/${other.id}/inside`, { text: "not for you" });
    expect(await (await post("/v1/inside/messages", {}, { as: mine.as })).json()).toEqual({ messages: [] });
    for (const path of [`/v1/sandboxes/${other.id}/inside`, `/v1/sandboxes/${mine.id}/inside`, `/v1/artifacts/${other.id}`, "/v1/status"]) {
      expect((await ask(path, { as: mine.as })).status, path).toBe(403);
    }
    expect((await ask("/mcp", { method: "POST", as: mine.as, body: "{}" })).status).toBe(403);
    // A token made of two sandboxes' tokens belongs to neither.
    const [, , hour, signature] = mine.as.split("_");
    const forged = `sbt_${other.id.slice(3)}_${hour}_${signature}`;
    expect((await post("/v1/inside/messages", {}, { as: forged })).status).toBe(401);
    const longer = mine.as.replace(`_${hour}_`, `_${Number(hour) + 1}_`);
    expect((await post("/v1/inside/messages", {}, { as: longer })).status).toBe(401);
  });

  test("lose access when the sandbox is removed, or after a day", async () => {
    const { id, as } = await createSandbox();
    const late = await createSandbox();
    const yesterday = insideToken(late.id, Date.now() - 25 * 3_600_000);
    expect((await post("/v1/inside/heartbeat", {}, { as: yesterday })).status).toBe(401);
    expect((await post("/v1/inside/heartbeat", {}, { as })).status).toBe(200);
    await station().sandboxes.remove(id);
    expect((await post("/v1/inside/heartbeat", {}, { as })).status).toBe(401);
    expect((await put("x", "x", as)).status).toBe(401);
    expect(defects).toEqual([]);
  });

  test("are the only callers: other tokens are denied", async () => {
    for (const scope of ["read", "run", "admin"] as const) {
      expect((await post("/v1/inside/heartbeat", {}, { as: await token(scope) })).status).toBe(403);
    }
  });
});
