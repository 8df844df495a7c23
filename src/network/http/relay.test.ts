import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ok, rigWith, scripted } from "../../../test/support/http-relay-rig.ts";
import { ChunkedScanner } from "./chunked-coding.ts";
import { header } from "./headers.ts";

function _payloadOf(chunked: string): string {
  let payload = "";
  new ChunkedScanner().scan(Buffer.from(chunked), 0, (part) => (payload += part));
  return payload;
}

const GET = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

describe("forwarding", () => {
  test("carries all requests over one connection on either side", async () => {
    const origin = scripted([ok("one"), ok("two")]);
    const { rig, client } = await rigWith(origin);
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n");
    expect(await client.until("one")).toBe("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(await client.until("two")).toContain("200 OK");
    expect(origin.received()).toBe("GET /1 HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(rig.upstreams).toHaveLength(1);
    expect(rig.outcomes).toMatchObject([
      { status: 200, forwarded: true, error: null, request: { target: "/1" } },
      { status: 200, forwarded: true, error: null, request: { target: "/2" } },
    ]);
  });

  test("answers pipelined requests in order, one at a time", async () => {
    const seen: string[] = [];
    const { client } = await rigWith({
      upstream: (socket) =>
        socket.on("data", (chunk) => {
          const text = chunk.toString();
          seen.push(text);
          setImmediate(() => socket.write(ok(text.slice(5, 6))));
        }),
    });
    client.send([1, 2, 3, 4, 5].map((n) => `GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""));
    await client.until(/\n1H.*\n2H.*\n3H.*\n4H.*\n5$/s);
    expect(seen).toHaveLength(5);
  });

  test("removes hop-by-hop headers, even those that Connection names, but not Host", async () => {
    const origin = scripted([
      ok("", "Connection: X-Back, keep-alive\r\nX-Back: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: b\r\nX-End: 2\r\n"),
    ]);
    const { client } = await rigWith(origin);
    client.send(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, keep-alive, Host\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: s\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nX-End: 2\r\n\r\n",
    );
    const answer = await client.until("\r\n\r\n");
    expect(origin.received()).toBe("GET / HTTP/1.1\r\nHost: a\r\nX-End: 2\r\n\r\n");
    expect(answer).toBe("HTTP/1.1 200 OK\r\nX-End: 2\r\nContent-Length: 0\r\n\r\n");
  });

  test("does not let the verdict change the framing of the request", async () => {
    const origin = scripted([ok("")]);
    const { client } = await rigWith({
      ...origin,
      forward: (head) => ({
        request: { ...head, headers: [header("Host", "b"), header("Content-Length", "99"), header("Transfer-Encoding", "chunked")] },
      }),
    });
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    await client.until("\r\n\r\n");
    expect(origin.received()).toBe("POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\nhi");
  });

  test("passes on a chunked body unchanged, with its trailers, both ways", async () => {
    const body = "3;a=b\r\nabc\r\n000A\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
    const origin = scripted([`HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n${body}`, ok("next")]);
    const { rig, client } = await rigWith(origin);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n${body}${GET}`);
    expect(await client.until("X-Sum: 1\r\n\r\n")).toBe(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    await client.until("next");
    expect(origin.received()).toBe(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body}${GET}`);
    expect(rig.upstreams).toHaveLength(1);
  });

  test("passes on a large body unchanged, both ways", async () => {
    const bytes = Buffer.alloc(5_000_000, "0123456789abcdef");
    const { client } = await rigWith({
      upstream: (socket) => {
        const hash = createHash("sha256");
        let left = bytes.length;
        let head = true;
        socket.on("data", (chunk) => {
          const body = head ? chunk.subarray(chunk.indexOf("\r\n\r\n") + 4) : chunk;
          head = false;
          hash.update(body);
          left -= body.length;
          if (left > 0) return;
          socket.write(`HTTP/1.1 200 OK\r\nX-Hash: ${hash.digest("hex")}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
          socket.write(bytes);
        });
      },
    });
    client.send(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    client.socket.write(bytes);
    const head = await client.until("\r\n\r\n");
    expect(head).toContain(createHash("sha256").update(bytes).digest("hex"));
    while (client.text().length < head.length + bytes.length) await new Promise((resolve) => client.socket.once("data", resolve));
    expect(Buffer.from(client.text().slice(head.length), "latin1").equals(bytes)).toBe(true);
  });

  test("keeps the headers of bodyless answers, and does not shift the next answer", async () => {
    const answers = [
      "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: x\r\n\r\n",
      "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
      ok("last"),
    ];
    const { rig, client } = await rigWith(scripted(answers));
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(await client.until("\r\n\r\n")).toBe(answers[0]);
    client.send(GET);
    expect(await client.until("\r\n\r\n")).toBe("HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 1234\r\n\r\n");
    client.send(GET);
    expect(await client.until("\r\n\r\n")).toBe("HTTP/1.1 204 No Content\r\n\r\n");
    client.send(GET);
    await client.until("last");
    expect(rig.upstreams).toHaveLength(1);
  });

  test("sends a read-until-close body in chunks, so that its end is certain", async () => {
    const { client } = await rigWith({
      upstream: (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end")),
    });
    client.send(GET);
    expect(await client.until("0\r\n\r\n")).toBe("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n");
    client.send("GET / HTTP/1.0\r\n\r\n");
    expect(await client.closed()).toEqual({ clean: true, text: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end" });
  });

  test("sends an old client neither chunks nor interim answers", async () => {
    const origin = scripted([
      `HTTP/1.1 100 Continue\r\n\r\n${ok("kept")}`,
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    ]);
    const { client } = await rigWith({
      ...origin,
      forward: (head) => ({ request: { ...head, version: "1.1", headers: [header("Host", "a")] } }),
    });
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    expect(await client.until("kept")).toBe("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nkept");
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    expect(await client.closed()).toEqual({ clean: true, text: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde" });
  });

  test("closes only the client's side for its Connection: close", async () => {
    const { rig, client } = await rigWith(scripted([ok("one"), ok("two")]));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(await client.closed()).toEqual({ clean: true, text: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none" });
    const second = await rig.connect();
    second.send(GET);
    await second.until("two");
    second.socket.destroy();
    expect(rig.upstreams).toHaveLength(1);
  });

  test("closes only the upstream's side for its Connection: close", async () => {
    const { rig, client } = await rigWith(scripted([ok("one", "Connection: close\r\n"), ok("two")]));
    client.send(GET);
    expect(await client.until("one")).not.toContain("close");
    client.send(GET);
    await client.until("two");
    expect(rig.upstreams).toHaveLength(2);
  });

  test("ignores what an upstream sends beyond its answer", async () => {
    const { rig, client } = await rigWith(scripted([`${ok("one")}${ok("poison")}`, ok("two")]));
    client.send(GET);
    await client.until("one");
    client.send(GET);
    await client.until("two");
    expect(client.text()).not.toContain("poison");
    expect(rig.upstreams).toHaveLength(2);
  });
});

describe("100-continue", () => {
  test("is left to the upstream", async () => {
    const origin = scripted(["HTTP/1.1 100 Continue\r\n\r\n", ok("done"), ok("next")]);
    const { client } = await rigWith(origin);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    expect(await client.until("\r\n\r\n")).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body");
    await client.until("done");
    expect(origin.received()).toContain("Expect: 100-continue");
    client.send(GET);
    await client.until("next");
  });

  test("ends the connection if refused, because the body may or may not follow", async () => {
    const { client } = await rigWith(scripted([ok("no")]));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    const { clean, text } = await client.closed();
    expect(clean).toBe(true);
    expect(text).toContain("Connection: close");
  });

  test("passes on a 103 with its headers, before the answer", async () => {
    const { client } = await rigWith(scripted([`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok("done")}`]));
    client.send(GET);
    expect(await client.until("done")).toBe("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  });

  test("cuts off endless interim answers", async () => {
    const { client } = await rigWith(scripted(["HTTP/1.1 102 Processing\r\n\r\n".repeat(100)]));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect((await client.closed()).text).toContain("HTTP/1.1 502 Bad Gateway");
  });
});

describe("upgrade", () => {
  const ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n";
  const echo = (socket: Socket) => {
    let switched = false;
    socket.on("data", (chunk) => {
      if (switched) socket.write(chunk);
      else
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\nhello",
        );
      switched = true;
    });
    socket.on("end", () => socket.end("bye"));
  };

  test("passes on raw bytes both ways after a 101, and each side's end", async () => {
    const { rig, client } = await rigWith({ upstream: echo });
    client.send(`${ask}`);
    const head = await client.until("hello");
    expect(head).toBe(
      "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
    );
    client.send("\0\x01 GET / HTTP/1.1\r\n\r\n");
    await client.until("\0\x01 GET / HTTP/1.1\r\n\r\n");
    client.socket.end("last");
    expect(await client.closed()).toEqual({ clean: true, text: "lastbye" });
    await rig.settled();
    expect(rig.outcomes).toMatchObject([{ status: 101, error: null }]);
  });

  test("passes on bytes that were sent with the request", async () => {
    const { client } = await rigWith({ upstream: echo });
    client.send(`${ask}early`);
    expect(await client.until("helloearly")).toContain("101");
  });

  test("transforms what comes back", async () => {
    const { client } = await rigWith({
      upstream: echo,
      forward: () => ({ response: (head) => ({ head, body: (chunk) => Buffer.from(chunk.toString().toUpperCase()) }) }),
    });
    client.send(ask);
    await client.until("HELLO");
    client.send("abc");
    expect(await client.until("ABC")).toBe("ABC");
  });

  test("is not passed on for h2c, which would hide later requests", async () => {
    const origin = scripted([ok("plain")]);
    const { client } = await rigWith(origin);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n");
    await client.until("plain");
    expect(origin.received()).toBe("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  });

  test("is refused if the client did not request it", async () => {
    const { client } = await rigWith(scripted(["HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"]));
    client.send(GET);
    expect(await client.until("\r\n\r\n")).toContain("HTTP/1.1 502");
  });

  test("returns an ordinary answer if declined", async () => {
    const { client } = await rigWith(scripted([ok("no"), ok("next")]));
    client.send(`${ask}${GET}`);
    expect(await client.until("no")).toContain("200 OK");
    expect(await client.until("next")).toContain("200 OK");
  });
});
