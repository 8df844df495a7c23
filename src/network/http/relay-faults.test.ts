import { once } from "node:events";
import type { Socket } from "node:net";
import { type Duplex, duplexPair, PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { ok, rigWith } from "../../../test/support/http-relay-rig.ts";
import { UpstreamPool } from "./pool.ts";
import { relayHttp } from "./relay.ts";
import type { BodyTransform } from "./relay-options.ts";
import { closed, GET } from "./testing-http.ts";

describe("a kept-alive connection that closes as the next request is sent", () => {
  /** The first connection answers once and breaks at the second request. Later ones behave as `then` says. */
  const breaking = (then: (socket: Socket) => void) => {
    const received: string[] = [];
    const upstream = (socket: Socket, index: number) => {
      let requests = 0;
      received[index] = "";
      socket.on("data", (chunk) => {
        received[index] += chunk.toString();
        requests += 1;
        if (index > 0) then(socket);
        else if (requests === 1) socket.write(ok("first"));
        else socket.resetAndDestroy();
      });
    };
    return { upstream, received };
  };

  test("causes the request to be repeated on a new one", async () => {
    const { upstream, received } = breaking((socket) => socket.write(ok("second")));
    const { rig, client } = await rigWith({ upstream });
    client.send(GET);
    await client.until("first");
    client.send(GET);
    await client.until("second");
    expect(rig.upstreams).toHaveLength(2);
    expect(received).toEqual([GET + GET, GET]);
    expect(rig.outcomes).toMatchObject([{ error: null }, { error: null }]);
  });

  test("causes only one repetition", async () => {
    const { upstream } = breaking((socket) => socket.destroy());
    const { rig, client } = await rigWith({ upstream });
    client.send(GET);
    await client.until("first");
    client.send(GET);
    await client.until("HTTP/1.1 502 Bad Gateway");
    expect(rig.upstreams).toHaveLength(2);
  });

  test.each([
    ["a POST", "POST / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a POST whose body was sent", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"],
    ["a PUT whose body was sent in part", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh"],
  ])("does not cause %s to be repeated", async (_name, request) => {
    const { upstream, received } = breaking((socket) => socket.write(ok("second")));
    const { client } = await rigWith({ upstream });
    client.send(GET);
    await client.until("first");
    client.send(request);
    await client.until("HTTP/1.1 502 Bad Gateway");
    expect(received).toHaveLength(1);
  });

  test("causes a POST to be repeated if its body was not sent yet", async () => {
    const { upstream, received } = breaking((socket) => {
      if (received[1]?.endsWith("hi")) socket.write(ok("second"));
      else client.send("hi");
    });
    const { client } = await rigWith({ upstream });
    client.send(GET);
    await client.until("first");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
    await client.until("second");
    expect(received[1]).toBe("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  });

  test("is not used for a POST after a long idle time", async () => {
    const pool = new UpstreamPool();
    const { rig, client } = await rigWith({
      upstream: (socket) => socket.on("data", () => socket.write(ok("x"))),
      pool,
      limits: { freshMs: 0 },
    });
    client.send(GET);
    await client.until("\r\n\r\nx");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    await client.until("\r\n\r\nx");
    expect(rig.upstreams).toHaveLength(2);
  });

  test("is not replaced if it closes on its first request", async () => {
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => socket.end()) });
    client.send(GET);
    await client.until("The upstream closed the connection without an answer.");
    expect(rig.upstreams).toHaveLength(1);
  });
});

describe("an upstream that breaks off", () => {
  const cases: Record<string, [string, "end" | "reset", string?]> = {
    "a clean end in a body with a length": ["HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "end"],
    "a reset in a body with a length": ["HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "reset"],
    "an end in a chunk": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "end"],
    "an end between chunks": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "end"],
    "an end before the last line of the trailers": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", "end"],
    "a reset in a body until close": ["HTTP/1.1 200 OK\r\n\r\nabc", "reset"],
    "a reset in a body until close for an old client": ["HTTP/1.1 200 OK\r\nX-Old: 1\r\n\r\nabc", "reset"],
    "an invalid chunk": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "end", "xyz"],
  };
  const transforms: [string, (() => BodyTransform) | null][] = [
    ["plain", null],
    ["through a Transform", () => new PassThrough()],
  ];
  for (const [how, transform] of transforms) {
    test.each(Object.entries(cases))(`${how}: %s is not a clean end for the client`, async (_name, [text, end, then]) => {
      const { rig, client } = await rigWith({
        upstream: (socket) => {
          socket.once("data", () => {
            socket.write(text);
            void client.until("200 OK").then(() => (end === "end" ? socket.end(then ?? "") : socket.resetAndDestroy()));
          });
        },
        forward: () => (transform === null ? {} : { response: (head) => ({ head, body: transform() }) }),
      });
      client.send(text.includes("X-Old") ? "GET / HTTP/1.0\r\n\r\n" : GET);
      expect((await client.closed()).clean).toBe(false);
      await rig.settled();
      expect(rig.outcomes).toMatchObject([{ status: 200, error: expect.any(Error) }]);
      expect(rig.pool.size).toBe(0);
    });
  }

  test("in the middle of the head gives the client an error", async () => {
    const { client } = await rigWith({ upstream: (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nX: ")) });
    client.send(GET);
    expect(await client.until("answer.\n")).toContain("HTTP/1.1 502 Bad Gateway");
  });

  test.each([
    "HTTP/1.1 200 OK\nX: y\n\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "SSH-2.0-x\r\n\r\n",
    "\x15\x03\x01",
  ])("an invalid answer (%j) is a 502", async (text) => {
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => socket.write(text)) });
    client.send(GET);
    await client.until("HTTP/1.1 502 Bad Gateway");
    await closed(rig.upstreams[0]);
    expect(rig.upstreams).toHaveLength(1);
  });
});

describe("a client that disconnects", () => {
  test("is answered even if an earlier reader saw it end", async () => {
    for (const [sent, status] of [
      ["GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "404"],
      ["GET /x HTTP/1.1\r\nHo", ""],
    ] as const) {
      const [client, relayed] = duplexPair();
      client.end(sent);
      const pieces: Buffer[] = [];
      relayed.on("data", (piece: Buffer) => pieces.push(piece));
      await once(relayed, "end");
      relayed.removeAllListeners("data").pause();
      const over = relayHttp(relayed, { decide: () => ({ kind: "answer", status: 404 }) }, Buffer.concat(pieces));
      let answer = "";
      for await (const piece of client.setEncoding("latin1")) answer += piece;
      expect(answer.slice(9, 12)).toBe(status);
      relayed.destroy();
      await over;
    }
  });

  test.each([
    ["while it waits for the answer", GET, ""],
    ["in the middle of its body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", ""],
    ["in the middle of the answer", GET, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"],
  ])("%s closes the upstream's connection", async (_name, request, answer) => {
    const { rig, client } = await rigWith({
      upstream: (socket) => {
        socket.once("data", () => {
          if (answer === "") client.socket.resetAndDestroy();
          else socket.write(answer);
        });
      },
    });
    client.send(request);
    if (answer !== "") {
      await client.until("abc");
      client.socket.resetAndDestroy();
    }
    await rig.settled();
    await closed(rig.upstreams[0]);
    expect(rig.outcomes).toMatchObject([{ error: { code: "gone" } }]);
    expect(rig.pool.size).toBe(0);
  });

  test("gets all its answers if it only ended its own side", async () => {
    const { client } = await rigWith({
      upstream: (socket) => socket.on("data", () => setTimeout(() => socket.write(ok("late")), 50)),
    });
    client.socket.end(GET + GET);
    const { clean, text } = await client.closed();
    expect(clean).toBe(true);
    expect(text.match(/late/g)).toHaveLength(2);
  });

  test("is disconnected after a while if it only ended its own side", async () => {
    const { rig, client } = await rigWith({ upstream: () => {}, limits: { halfOpenMs: 100 } });
    client.socket.end(GET);
    expect((await client.closed()).clean).toBe(false);
    await closed(rig.upstreams[0]);
  });

  test("closes the upstream's connection if its body is incomplete", async () => {
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => client.socket.end()) });
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    expect((await client.closed()).clean).toBe(false);
    await closed(rig.upstreams[0]);
  });

  test("shows as a destroyed stream if it leaves during the decision", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let takenStream: Duplex | null = null;
    const { rig, client } = await rigWith({
      upstream: () => {},
      decide: async () => {
        client.socket.resetAndDestroy();
        await promise;
        return {
          kind: "take",
          take: (stream) => {
            takenStream = stream;
          },
        };
      },
    });
    client.send(GET);
    await rig.settled();
    resolve();
    await new Promise((done) => setImmediate(done));
    expect((takenStream as Duplex | null)?.destroyed).toBe(true);
  });
});
