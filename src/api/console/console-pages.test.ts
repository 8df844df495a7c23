import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";

const { server, base } = useServer();

async function build(): Promise<void> {
  await mkdir(join(base(), "console", "assets"), { recursive: true });
  await writeFile(join(base(), "console", "index.html"), "<!doctype html><title>Caisson</title>");
  await writeFile(join(base(), "console", "assets", "main-1.js"), `export const words = ${JSON.stringify("word ".repeat(500))};`);
  await writeFile(join(base(), "secret.js"), "not the console's");
}
const get = (path: string, init: RequestInit = {}) => fetch(`${server().status.url}${path}`, init);

describe("the console's pages", () => {
  test("serve the same page at every console path, without a token, never under the API", async () => {
    await build();
    for (const path of ["/", "/runs", "/runs/run_k3v7q2m5x4ab?tab=diff", "/sandboxes", "/settings/tokens", "/work", "/specs/words"]) {
      const answer = await get(path);
      expect([answer.status, answer.headers.get("content-type")], path).toEqual([200, "text/html; charset=utf-8"]);
      expect(await answer.text()).toContain("<title>Caisson</title>");
    }
    expect((await get("/v1/runs")).status).toBe(401);
    expect((await get("/elsewhere")).status).toBe(401);
    expect((await get("/runs", { method: "POST" })).status).toBe(401);
  });

  test("show people a not-found page, and give programs the API's answer", async () => {
    await build();
    const html = { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } };
    for (const path of ["/nonsense", "/nonsense/deeper?x=1", "/v2/runs"]) {
      const answer = await get(path, html);
      expect([answer.status, answer.headers.get("content-type")], path).toEqual([404, "text/html; charset=utf-8"]);
      expect(await answer.text()).toContain("<title>Caisson</title>");
      const program = await get(path);
      expect([program.status, program.headers.get("content-type")], path).toEqual([401, "application/problem+json"]);
    }
    for (const path of ["/v1/nonsense", "/v1", "/mcp", "/assets/missing.js", "/missing.svg"])
      expect((await get(path, html)).headers.get("content-type"), path).toContain("json");
    expect((await get("/nonsense", { ...html, method: "POST" })).status).toBe(401);
  });

  test("forbid inline and foreign scripts, and framing", async () => {
    await build();
    const policy = (await get("/")).headers.get("content-security-policy") ?? "";
    const directives = Object.fromEntries(policy.split("; ").map((each) => [each.split(" ")[0], each.split(" ").slice(1).join(" ")]));
    expect(directives).toMatchObject({
      "default-src": "'none'",
      "script-src": "'self'",
      "connect-src": "'self'",
      "frame-ancestors": "'none'",
      "base-uri": "'none'",
      "form-action": "'none'",
    });
  });

  test("are cached permanently if their names are hashed, else revalidated", async () => {
    await build();
    const page = await get("/");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    expect((await get("/", { headers: { "if-none-match": page.headers.get("etag") ?? "" } })).status).toBe(304);
    const script = await get("/assets/main-1.js");
    expect(script.headers.get("cache-control")).toContain("immutable");
    expect(script.headers.get("content-encoding")).toBe("gzip");
    expect(await script.text()).toContain("word word");
    expect((await get("/assets/main-1.js", { headers: { "accept-encoding": "identity" } })).headers.get("content-encoding")).toBeNull();
    const head = await get("/assets/main-1.js", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  test("serve only files of their folder", async () => {
    await build();
    for (const path of ["/assets/../secret.js", "/assets/..%2f..%2fsecret.js", "/secret.js", "/assets/missing.js"]) {
      expect((await get(path)).status, path).toBe(401);
    }
  });

  test("reject clients that use a foreign host name", async () => {
    await build();
    const { request } = await import("node:http");
    const status = await new Promise((resolve) =>
      request(`${server().status.url}/`, { headers: { host: "evil.example" } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      }).end(),
    );
    expect(status).toBe(403);
  });

  test("explain what to do if the console was not built", async () => {
    const answer = await get("/");
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain("scripts/setup");
  });
});
