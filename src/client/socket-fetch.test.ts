import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let base = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-socket-fetch-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** Returns what `then` computes from the answer, in a separate process. */
function fetchInChild(answer: string, then: string): unknown {
  const program = `
    import { createServer } from "node:http";
    import { socketFetch } from ${JSON.stringify(join(import.meta.dirname, "socket-fetch.ts"))};
    const path = ${JSON.stringify(join(base, "socket"))};
    const server = createServer((request, response) => { ${answer} }).listen(path, async () => {
      const answer = await socketFetch(path)("http://station/v1/things?a=1", { method: "POST", body: "{}" });
      console.log(JSON.stringify(await (async () => { ${then} })()));
      server.close();
    });`;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" }));
}

describe("fetch over a Unix socket", () => {
  test("returns status, headers and JSON", () => {
    const answer = `response.writeHead(201, { "x-one": "1" }); response.end(JSON.stringify({ url: request.url, text: "ä".repeat(100_000) }));`;
    const then = `const { url, text } = await answer.json();
      const { status, ok, headers } = answer;
      return [status, ok, headers["x-one"], url, text.length];`;
    expect(fetchInChild(answer, then)).toEqual([201, true, "1", "/v1/things?a=1", 100_000]);
  });

  test("returns a stream, or null for an empty answer", () => {
    const pieces = `const pieces = []; for await (const piece of answer.body) pieces.push(...piece); return pieces;`;
    expect(fetchInChild(`response.end(Buffer.from([0, 255, 10]))`, pieces)).toEqual([0, 255, 10]);
    expect(fetchInChild(`response.writeHead(204).end()`, "return [answer.status, answer.body];")).toEqual([204, null]);
  });

  test("fails if the connection ends in the middle of the answer", () => {
    const answer = `response.writeHead(200, { "content-length": "100" }); response.write("{"); setImmediate(() => request.socket.destroy());`;
    expect(fetchInChild(answer, `return await answer.json().then(() => "read", (error) => error.code);`)).toBe("ECONNRESET");
  });
});
