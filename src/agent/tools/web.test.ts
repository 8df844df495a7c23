import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import type { FetchRequest, FetchResult } from "../../sandbox/sandbox-network.ts";
import type { ToolContext } from "../tool.ts";
import { BASH_CHARACTERS_MAX } from "./limits.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";
import { requestNetworkTool, webFetchTool } from "./web.ts";

let bench: Workbench;
beforeAll(async () => {
  bench = await createWorkbench();
});
afterAll(() => bench[Symbol.asyncDispose]());

function networkOf(result: FetchResult, requests: FetchRequest[] = []): ToolContext["network"] {
  return {
    async fetch(request) {
      requests.push(request);
      return result;
    },
    allow: async (rule) => {
      if (rule.includes("bad")) throw new CaissonError("unsupported", "not here", { hint: "Elsewhere." });
      return `github.com, ${rule}`;
    },
    takeDenials: () => [],
  };
}
const page = (body: string | Buffer, type: string, more: { status?: number; truncated?: boolean } = {}): FetchResult => ({
  status: 200,
  truncated: false,
  ...more,
  headers: type === "" ? {} : { "content-type": type },
  body: Buffer.from(body),
  url: "https://x.org/after",
});
const fetch = (result: FetchResult, args: object = {}) =>
  bench.use(webFetchTool, { url: "https://x.org/", ...args }, { network: networkOf(result) });

describe("web_fetch", () => {
  test("returns a page's text, its final URL and its size", async () => {
    const result = await fetch(page("<h1>Hi</h1><script>x</script>", "text/html; charset=utf-8"));
    expect(result).toMatchObject({ outcome: "ok", details: { status: 200 } });
    expect(result.text).toMatch(/^200 https:\/\/x\.org\/after \(text\/html.*29 bytes\)\n\n# Hi$/);
    expect((await fetch(page("<h1>Hi</h1>", "text/html"), { raw: true })).text).toContain("<h1>Hi</h1>");
  });
  test("decodes other text types and charsets, and rejects binary content", async () => {
    expect((await fetch(page('{"a":1}', "application/vnd.api+json"))).text).toContain('{"a":1}');
    expect((await fetch(page(Buffer.from([0xe9]), "text/plain; charset=iso-8859-1"))).text).toContain("é");
    expect((await fetch(page("\u0000\u0001", "application/zip"))).text).toContain("not text");
    expect((await fetch(page("words", ""))).text).toContain("words");
  });
  test("reports a server's failure to the model, and cuts a long page", async () => {
    expect(await fetch(page("nope", "text/plain", { status: 404 }))).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("404"),
    });
    const long = await fetch(page("x".repeat(BASH_CHARACTERS_MAX * 2), "text/plain", { truncated: true }));
    expect(long.text.length).toBeLessThan(BASH_CHARACTERS_MAX + 500);
    expect(long.text).toContain("the rest left out");
  });
  test("passes on the reason of a denial", async () => {
    const denied = await fetch({ denied: { reason: "host_not_allowed", text: "No rule allows x.org." } });
    expect(denied).toEqual({ outcome: "error", text: "No rule allows x.org.", details: { denied: "host_not_allowed" } });
  });
  test("accepts only http and https URLs", async () => {
    for (const url of ["ftp://x.org/", "file:///etc/passwd", "x.org"]) await expect(bench.use(webFetchTool, { url })).rejects.toThrow();
  });
});

describe("request_network", () => {
  const network = networkOf(page("", ""));
  const ask = (args: object) => bench.use(requestNetworkTool, { reason: "to read", ...args }, { network });
  test("opens the network to an approved host", async () => {
    expect(await ask({ host: "API.github.com" })).toEqual({
      outcome: "ok",
      text: "It is allowed. The sandbox may reach: github.com, api.github.com",
    });
    expect((await ask({ host: "2606:2800::1", ports: [22, 443] })).text).toContain("[2606:2800::1]:22+443");
  });
  test("asks with host and reason, again for each host", () => {
    expect(requestNetworkTool.subject({ host: "x.org", reason: "docs" })).toBe("request_network:x.org (docs)");
    expect(requestNetworkTool.asksEachTime).toBe(true);
  });
  test("rejects a request for every host, and explains a refusal", async () => {
    await expect(ask({ host: "*" })).rejects.toThrow();
    expect(await ask({ host: "bad.org" })).toEqual({ outcome: "error", text: "Not here. Elsewhere." });
  });
});
