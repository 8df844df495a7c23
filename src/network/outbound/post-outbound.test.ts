import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { postOutbound } from "./post-outbound.ts";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

async function serve(listener: Parameters<typeof createServer>[1]): Promise<number> {
  server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const post = { headers: { "content-type": "text/plain" }, body: "words" };

describe("a message to an untrusted address", () => {
  test("arrives, and the status of its answer is returned", async () => {
    let body = "";
    const port = await serve((request, response) => {
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => response.writeHead(503, { "retry-after": "7" }).end("x".repeat(1000)));
    });
    expect(await postOutbound({ ...post, url: `http://127.0.0.1:${port}/hook`, allowPrivate: true })).toEqual({
      status: 503,
      retryAfterSeconds: 7,
    });
    expect(body).toBe("words");
  });

  test("goes to the checked address, whatever its name resolves to later", async () => {
    const port = await serve((_request, response) => response.writeHead(204).end());
    const names: string[] = [];
    const resolve = async (name: string) => {
      names.push(name);
      return ["127.0.0.1"];
    };
    expect(await postOutbound({ ...post, url: `http://hook.test:${port}/`, allowPrivate: true }, resolve)).toMatchObject({ status: 204 });
    expect(names).toEqual(["hook.test"]);
  });

  test.each([
    ["http://hook.test/", "93.184.216.34"],
    ["https://hook.test/", "127.0.0.1"],
    ["https://hook.test/", "10.0.0.1"],
    ["https://hook.test/", "169.254.169.254"],
    ["https://hook.test/", "::1"],
    ["https://hook.test/", "::ffff:10.0.0.1"],
    ["https://127.0.0.1/", ""],
    ["https://2130706433/", ""],
    ["https://[::1]/", ""],
  ])("never goes to %s at %s", async (url, address) => {
    expect(await postOutbound({ ...post, url, allowPrivate: false }, async () => [address])).toMatchObject({ error: expect.any(String) });
  });

  test("never goes to a forbidden address, even if private ones are allowed", async () => {
    for (const address of ["169.254.169.254", "0.0.0.0", "224.0.0.1"]) {
      const answer = await postOutbound({ ...post, url: "http://hook.test/", allowPrivate: true }, async () => [address]);
      expect(answer).toEqual({ error: "the address of hook.test is not allowed" });
    }
  });

  test("returns an error text if no server accepts it", async () => {
    const port = await serve(() => {});
    server?.close();
    server?.closeAllConnections();
    await once(server as Server, "close");
    expect(await postOutbound({ ...post, url: `http://127.0.0.1:${port}/`, allowPrivate: true })).toEqual({
      error: "the connection was refused",
    });
    const failing = async () => {
      throw new Error("no");
    };
    expect(await postOutbound({ ...post, url: "https://hook.test/", allowPrivate: false }, failing)).toEqual({
      error: "the name hook.test could not be looked up",
    });
  });
});
