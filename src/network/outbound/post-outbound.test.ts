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

describe("a message to an address that somebody named", () => {
  test("arrives, and its answer's status comes back", async () => {
    let heard = "";
    const port = await serve((request, response) => {
      request.on("data", (chunk) => {
        heard += chunk;
      });
      request.on("end", () => response.writeHead(503, { "retry-after": "7" }).end("x".repeat(1000)));
    });
    expect(await postOutbound({ ...post, url: `http://127.0.0.1:${port}/hook`, allowPrivate: true })).toEqual({
      status: 503,
      retryAfterSeconds: 7,
    });
    expect(heard).toBe("words");
  });

  test("goes to the address that was checked, whatever its name leads to later", async () => {
    const port = await serve((_request, response) => response.writeHead(204).end());
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return ["127.0.0.1"];
    };
    expect(await postOutbound({ ...post, url: `http://hook.test:${port}/`, allowPrivate: true }, resolve)).toMatchObject({ status: 204 });
    expect(asked).toEqual(["hook.test"]);
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

  test("never goes where nobody may, allowed or not", async () => {
    for (const address of ["169.254.169.254", "0.0.0.0", "224.0.0.1"]) {
      const answer = await postOutbound({ ...post, url: "http://hook.test/", allowPrivate: true }, async () => [address]);
      expect(answer).toEqual({ error: "hook.test leads to an address that is not reached" });
    }
  });

  test("that nobody takes is an error in words", async () => {
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
