import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Conditions, checkMatch, names, partOf } from "./conditions.ts";

const { ask, post, server, token, endedRun, station, defects } = useServer();
const none: Conditions = { ifMatch: null, ifNoneMatch: null, ifRange: null, range: null, isHead: false };

async function fileOf(text: string): Promise<{ path: string; etag: string }> {
  const { id } = (await (await post("/v1/sandboxes")).json()) as { id: string };
  const path = `/v1/sandboxes/${id}/files/content?path=/workspace/file`;
  expect((await ask(path, { method: "PUT", body: text })).status).toBe(200);
  const etag = (await ask(path, { method: "HEAD" })).headers.get("etag");
  return { path, etag: etag ?? "" };
}

describe("a file", () => {
  test("answers HEAD without content, and 304 to a client that has this version", async () => {
    const { path, etag } = await fileOf("0123456789");
    const head = await ask(path, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), head.headers.get("accept-ranges"), await head.text()]).toEqual([
      200,
      "10",
      "bytes",
      "",
    ]);
    const whole = await ask(path);
    expect([whole.headers.get("etag"), whole.headers.get("content-length"), await whole.text()]).toEqual([etag, "10", "0123456789"]);
    const same = await ask(path, { headers: { "if-none-match": `"x", W/${etag}` } });
    expect([same.status, same.headers.get("etag"), await same.text()]).toEqual([304, etag, ""]);
    await ask(path, { method: "PUT", body: "another length" });
    expect((await ask(path, { headers: { "if-none-match": etag } })).status).toBe(200);
    await expect.poll(() => server().status.requests).toBe(0);
  });

  test.each([
    ["bytes=2-4", 206, "234", "bytes 2-4/10"],
    ["bytes=7-", 206, "789", "bytes 7-9/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=-100", 206, "0123456789", "bytes 0-9/10"],
    ["bytes=8-100", 206, "89", "bytes 8-9/10"],
    ["bytes=0-1,3-4", 200, "0123456789", null],
    ["bytes=4-2", 200, "0123456789", null],
    ["lines=1-2", 200, "0123456789", null],
  ])("is sent in the requested range: %s", async (range, status, text, contentRange) => {
    const { path } = await fileOf("0123456789");
    const response = await ask(path, { headers: { range } });
    expect([response.status, response.headers.get("content-range"), response.headers.get("content-length")]).toEqual([
      status,
      contentRange,
      String(text.length),
    ]);
    expect(await response.text()).toBe(text);
  });

  test("reports its size for a range past its end", async () => {
    const { path, etag } = await fileOf("0123456789");
    for (const range of ["bytes=10-", "bytes=99-100", "bytes=-0"]) {
      const response = await ask(path, { headers: { range } });
      expect([range, response.status, response.headers.get("content-range")]).toEqual([range, 416, "bytes */10"]);
      expect(await response.json()).toMatchObject({ code: "out_of_range" });
    }
    // The rest of a partial download, unless the file has changed.
    expect(await (await ask(path, { headers: { range: "bytes=5-", "if-range": etag } })).text()).toBe("56789");
    expect(await (await ask(path, { headers: { range: "bytes=5-", "if-range": '"other"' } })).text()).toBe("0123456789");
  });

  test("is replaced only if it is the version that the writer knows", async () => {
    const { path, etag } = await fileOf("as it was");
    const write = (headers: Record<string, string>, body: string) => ask(path, { method: "PUT", headers, body });
    const refused = await write({ "if-match": '"other"' }, "lost");
    expect([refused.status, await refused.json()]).toMatchObject([412, { code: "stale" }]);
    expect((await write({ "if-none-match": "*" }, "lost")).status).toBe(412);
    expect(await (await ask(path)).text()).toBe("as it was");
    expect((await write({ "if-match": etag }, "as it is")).status).toBe(200);
    expect((await write({ "if-match": etag }, "lost")).status).toBe(412);
    const elsewhere = path.replace("/workspace/file", "/workspace/new");
    expect((await ask(elsewhere, { method: "PUT", headers: { "if-match": "*" }, body: "x" })).status).toBe(412);
    expect((await ask(elsewhere, { method: "PUT", headers: { "if-none-match": "*" }, body: "x" })).status).toBe(200);
    expect(defects).toEqual([]);
  });

  test("accepts only one of many concurrent writes with the same condition", async () => {
    const { path, etag } = await fileOf("as it was");
    const bodies = Array.from({ length: 12 }, (_, at) => "x".repeat(at + 1));
    const answers = await Promise.all(bodies.map((body) => ask(path, { method: "PUT", headers: { "if-match": etag }, body })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...bodies.slice(1).map(() => 412)]);
    const winner = bodies[answers.findIndex(({ status }) => status === 200)];
    expect(await (await ask(path)).text()).toBe(winner);
    const elsewhere = path.replace("/workspace/file", "/workspace/first");
    const first = await Promise.all(bodies.map((body) => ask(elsewhere, { method: "PUT", headers: { "if-none-match": "*" }, body })));
    expect(first.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(defects).toEqual([]);
  });
});

test("sends an ETag for runs, sessions, sandboxes and the OpenAPI document", async () => {
  const as = await token("read");
  const run = await endedRun();
  for (const path of [`/v1/runs/${run}`, `/v1/sessions/${run}`, "/v1/openapi.json", "/v1/sandboxes"]) {
    const etag = (await ask(path, { as })).headers.get("etag") ?? "";
    expect(etag, path).toMatch(/^".+"$/);
    const again = await ask(path, { as, headers: { "if-none-match": etag } });
    expect([path, again.status, await again.text()]).toEqual([path, 304, ""]);
  }
  const before = (await ask("/v1/sandboxes", { as })).headers.get("etag") ?? "";
  const { id } = (await (await post("/v1/sandboxes")).json()) as { id: string };
  expect((await ask("/v1/sandboxes", { as, headers: { "if-none-match": before } })).status).toBe(200);
  await station().sandboxes.remove(id);
});

test("parses ETags and ranges as RFC 9110 defines them", () => {
  expect(names('"a", W/"b"', '"b"', { weakly: true })).toBe(true);
  expect(names('"a", W/"b"', '"b"', { weakly: false })).toBe(false);
  expect(partOf({ ...none, range: "bytes=-" }, { sizeBytes: 10, etag: "" })).toBeNull();
  expect(() => partOf({ ...none, range: "bytes=0-" }, { sizeBytes: 0, etag: "" })).toThrow(
    expect.objectContaining({ code: "out_of_range" }),
  );
  expect(() => checkMatch({ ...none, ifMatch: 'W/"a"' }, '"a"')).toThrow(expect.objectContaining({ code: "stale" }));
  expect(() => checkMatch({ ...none, ifMatch: "*" }, '"a"')).not.toThrow();
});
