import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { Transform } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { type RelayRig, type RelayRigOptions, startRelayRig, type TestClient } from "../../../test/support/http-relay-rig.ts";
import { CaissonError } from "../../contract/error.ts";
import { ChunkedScanner } from "./chunked.ts";
import { header } from "./head.ts";
import { RelayRefusal } from "./relay.ts";

async function rigWith(options: RelayRigOptions): Promise<{ rig: RelayRig; client: TestClient }> {
  const rig = await startRelayRig(options);
  const client = await rig.connect();
  onTestFinished(async () => {
    client.socket.destroy();
    await rig[Symbol.asyncDispose]();
  });
  return { rig, client };
}

/** An upstream that answers each chunk it receives with the next of these texts, and keeps what it received. */
function scripted(answers: readonly string[]): { upstream: (socket: Socket) => void; received: () => string } {
  let received = "";
  let next = 0;
  const upstream = (socket: Socket) => {
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const answer = answers[next++];
      if (answer !== undefined) socket.write(answer, "latin1");
    });
  };
  return { upstream, received: () => received };
}

function payloadOf(chunked: string): string {
  let payload = "";
  new ChunkedScanner().scan(Buffer.from(chunked), 0, (part) => (payload += part));
  return payload;
}

const ok = (body: string, headers = "") => `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
const GET = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

describe("forwarding", () => {
  test("a request and its answer, one connection on either side for all of them", async () => {
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

  test("pipelined requests are answered in order, each sent when the one before is answered", async () => {
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

  test("headers for one hop stay behind, those that Connection names too; Host never", async () => {
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

  test("the framing of the request cannot be changed by the verdict", async () => {
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

  test("a chunked body passes as it is, with its trailers, in both directions", async () => {
    const body = "3;a=b\r\nabc\r\n000A\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
    const origin = scripted([`HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n${body}`, ok("next")]);
    const { rig, client } = await rigWith(origin);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n${body}${GET}`);
    expect(await client.until("X-Sum: 1\r\n\r\n")).toBe(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    await client.until("next");
    expect(origin.received()).toBe(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body}${GET}`);
    expect(rig.upstreams).toHaveLength(1);
  });

  test("a large body in both directions arrives as it was sent", async () => {
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

  test("answers without a body keep their headers and do not shift the next", async () => {
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

  test("a body until close is given in chunks to whoever knows them, so that its end is sure", async () => {
    const { client } = await rigWith({
      upstream: (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end")),
    });
    client.send(GET);
    expect(await client.until("0\r\n\r\n")).toBe("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n");
    client.send("GET / HTTP/1.0\r\n\r\n");
    expect(await client.closed()).toEqual({ clean: true, text: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end" });
  });

  test("an old client gets no chunks and no interim answers, and may keep its connection", async () => {
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

  test("Connection: close of the client closes its side only", async () => {
    const { rig, client } = await rigWith(scripted([ok("one"), ok("two")]));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(await client.closed()).toEqual({ clean: true, text: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none" });
    const second = await rig.connect();
    second.send(GET);
    await second.until("two");
    second.socket.destroy();
    expect(rig.upstreams).toHaveLength(1);
  });

  test("Connection: close of the upstream closes that side only", async () => {
    const { rig, client } = await rigWith(scripted([ok("one", "Connection: close\r\n"), ok("two")]));
    client.send(GET);
    expect(await client.until("one")).not.toContain("close");
    client.send(GET);
    await client.until("two");
    expect(rig.upstreams).toHaveLength(2);
  });

  test("what an upstream says beyond its answer is not taken for the next", async () => {
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
  test("is the upstream's to give", async () => {
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

  test("when it is refused, the connection ends: the body may come or not", async () => {
    const { client } = await rigWith(scripted([ok("no")]));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    const { clean, text } = await client.closed();
    expect(clean).toBe(true);
    expect(text).toContain("Connection: close");
  });

  test("103 is passed on with its headers, before the answer", async () => {
    const { client } = await rigWith(scripted([`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok("done")}`]));
    client.send(GET);
    expect(await client.until("done")).toBe("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  });

  test("interim answers without end are cut off", async () => {
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

  test("raw bytes both ways after a 101, and each side's end by itself", async () => {
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

  test("bytes sent with the request reach the other protocol", async () => {
    const { client } = await rigWith({ upstream: echo });
    client.send(`${ask}early`);
    await client.until("helloearly");
  });

  test("the body's transform sees what comes back", async () => {
    const { client } = await rigWith({
      upstream: echo,
      forward: () => ({ response: (head) => ({ head, body: (chunk) => Buffer.from(chunk.toString().toUpperCase()) }) }),
    });
    client.send(ask);
    await client.until("HELLO");
    client.send("abc");
    await client.until("ABC");
  });

  test("to h2c is not passed on: it would hide what follows", async () => {
    const origin = scripted([ok("plain")]);
    const { client } = await rigWith(origin);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n");
    await client.until("plain");
    expect(origin.received()).toBe("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  });

  test("a 101 that nobody asked for is refused", async () => {
    const { client } = await rigWith(scripted(["HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"]));
    client.send(GET);
    expect(await client.until("\r\n\r\n")).toContain("HTTP/1.1 502");
  });

  test("an upgrade that is declined is an ordinary answer", async () => {
    const { client } = await rigWith(scripted([ok("no"), ok("next")]));
    client.send(`${ask}${GET}`);
    await client.until("no");
    await client.until("next");
  });
});

describe("answers of the relay itself", () => {
  test("with a body, without for HEAD, and the connection goes on", async () => {
    const { client } = await rigWith({
      upstream: () => {},
      decide: (head) => ({
        kind: "answer",
        status: 403,
        headers: [
          ["X-Why", head.target],
          ["Content-Length", "999"],
        ],
        body: "nö\n",
      }),
    });
    client.send(
      "GET /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\nPOST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel",
    );
    const common = "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\n";
    expect(await client.until("\r\n\r\nn\xc3\xb6\n")).toBe(`HTTP/1.1 403 Forbidden\r\nX-Why: /a\r\n${common}n\xc3\xb6\n`);
    expect(await client.until("\r\n\r\n")).toBe(`HTTP/1.1 403 Forbidden\r\nX-Why: /b\r\n${common}`);
    await client.until("n\xc3\xb6\n");
    client.send("loGET /d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect((await client.closed()).text).toContain("X-Why: /d");
  });

  test("a header with a line break in it becomes a 500", async () => {
    const { client } = await rigWith({
      upstream: () => {},
      decide: () => ({ kind: "answer", status: 200, headers: [["X", "a\r\nY: b"]] }),
    });
    client.send(GET);
    expect(await client.until("\r\n\r\n")).toContain("HTTP/1.1 500 Internal Server Error");
  });

  test.each([
    [
      "a refusal by connect",
      new RelayRefusal({ kind: "answer", status: 403, body: "not this address\n" }),
      "HTTP/1.1 403 Forbidden",
      "not this address\n",
    ],
    [
      "our own error",
      new CaissonError("unavailable", "nothing listens there", { hint: "Start it." }),
      "HTTP/1.1 502 Bad Gateway",
      "Nothing listens there. Start it.\n",
    ],
    ["a timeout", new CaissonError("timeout", "too slow"), "HTTP/1.1 504 Gateway Timeout", "Too slow.\n"],
    [
      "any other",
      Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:80"), { code: "ECONNREFUSED" }),
      "HTTP/1.1 502 Bad Gateway",
      "The upstream could not be reached (ECONNREFUSED).\n",
    ],
  ])("%s", async (_name, error, line, text) => {
    const { rig, client } = await rigWith({ upstream: () => {}, forward: () => ({ connect: () => Promise.reject(error) }) });
    client.send(GET);
    const answer = await client.until(text);
    expect(answer).toContain(line);
    expect(answer).not.toContain("10.1.2.3");
    client.send(GET);
    await client.until(text);
    expect(rig.outcomes).toMatchObject([
      { forwarded: false, error },
      { forwarded: false, error },
    ]);
  });

  test("a decide that throws, or rejects, is answered", async () => {
    let calls = 0;
    const decide = () => {
      calls += 1;
      if (calls === 1) throw new Error("bug");
      return Promise.reject(new Error("bug"));
    };
    const { client } = await rigWith({ upstream: () => {}, decide });
    client.send(GET + GET);
    await client.until("HTTP/1.1 502 Bad Gateway");
    await client.until("HTTP/1.1 502 Bad Gateway");
  });

  test("a connection that is taken over gets the bytes that came early, after a 200", async () => {
    const { client } = await rigWith({
      upstream: () => {},
      decide: async () => ({
        kind: "take",
        take: (stream, first) => {
          stream.write(`first:${first}`);
          stream.on("data", (chunk) => stream.write(chunk)).resume();
          stream.on("end", () => stream.end());
        },
      }),
    });
    client.send("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nhello");
    expect(await client.until("first:hello")).toBe("HTTP/1.1 200 Connection Established\r\n\r\nfirst:hello");
    client.socket.end("rest");
    expect(await client.closed()).toEqual({ clean: true, text: "rest" });
  });
});

describe("what the verdict does to an answer", () => {
  const upper = () => new Transform({ transform: (chunk, _encoding, done) => done(null, Buffer.from(chunk.toString().toUpperCase())) });
  /** Holds the last byte back until the next comes, as one that looks for something over the borders of chunks does. */
  const holding = () => {
    let held = Buffer.alloc(0);
    return new Transform({
      transform(chunk, _encoding, done) {
        const all = Buffer.concat([held, chunk]);
        held = all.subarray(-1);
        done(null, all.subarray(0, -1));
      },
      flush: (done) => done(null, held),
    });
  };

  test.each([
    ["a function", () => (chunk: Buffer) => Buffer.from(chunk.toString().toUpperCase()), "ABCDE"],
    ["a Transform", upper, "ABCDE"],
    ["a Transform that holds back", holding, "abcde"],
  ])("%s changes the payload of a length, of chunks and until close", async (_name, make, expected) => {
    const answers = [
      ok("abcde"),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: secret\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nabcde",
    ];
    let next = 0;
    const { client } = await rigWith({
      upstream: (socket) => {
        socket.on("data", () => {
          socket.write(answers[next++] as string);
          if (next === answers.length) socket.end();
        });
      },
      forward: () => ({ response: (head) => ({ head: { ...head, headers: [...head.headers, header("X-Seen", "1")] }, body: make() }) }),
    });
    client.send(GET);
    const length = await client.until(expected);
    expect(length).toContain("Content-Length: 5");
    expect(length).toContain("X-Seen: 1");
    client.send(GET);
    const chunked = await client.until("0\r\n\r\n");
    expect(payloadOf(chunked.slice(chunked.indexOf("\r\n\r\n") + 4))).toBe(expected);
    expect(chunked).not.toContain("secret");
    client.send("GET / HTTP/1.0\r\n\r\n");
    const { clean, text } = await client.closed();
    expect(clean).toBe(true);
    expect(text.endsWith(`\r\n\r\n${expected}`)).toBe(true);
  });

  test.each([
    ["a function", () => (chunk: Buffer) => chunk.subarray(1)],
    ["a Transform", () => new Transform({ transform: (chunk, _encoding, done) => done(null, chunk.subarray(1)) })],
    ["a Transform that adds", () => new Transform({ transform: (chunk, _encoding, done) => done(null, `${chunk}!`) })],
    ["a Transform that fails", () => new Transform({ transform: (_chunk, _encoding, done) => done(new Error("no")) })],
  ])("%s that changes the length breaks the connection off", async (_name, make) => {
    const { rig, client } = await rigWith({
      ...scripted([ok("abcde")]),
      forward: () => ({ response: (head) => ({ head, body: make() }) }),
    });
    client.send(GET);
    const { clean, text } = await client.closed();
    expect(clean).toBe(false);
    expect(text).not.toContain("!");
    await rig.settled();
    expect(rig.outcomes[0]?.error).not.toBeNull();
  });

  test("a response hook that throws, or writes a line break, is a 502 without its text", async () => {
    let calls = 0;
    const { client } = await rigWith({
      upstream: (socket) => socket.on("data", () => socket.write(ok("secret"))),
      forward: () => ({
        response: (head) => {
          calls += 1;
          if (calls === 1) throw new Error("secret");
          return { head: { ...head, headers: [header("X", "a\r\nb")] } };
        },
      }),
    });
    client.send(GET + GET);
    await client.until("HTTP/1.1 502");
    await client.until("HTTP/1.1 502");
    expect(client.text()).not.toContain("secret");
  });
});

test("bytes are counted as they pass, heads included", async () => {
  let sent = 0;
  let received = 0;
  const origin = scripted([ok("hello"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"]);
  const { client } = await rigWith({
    ...origin,
    onBytes: (out, back) => {
      sent += out;
      received += back;
    },
  });
  const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
  client.send(post);
  await client.until("hello");
  client.send(GET);
  await client.until("0\r\n\r\n");
  expect(sent).toBe(post.length + GET.length);
  expect(received).toBe(client.text().length);
});
