import { Transform } from "node:stream";
import { describe, expect, test } from "vitest";
import { ok, rigWith, scripted } from "../../../test/support/http-relay-rig.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { ChunkedScanner } from "./chunked-coding.ts";
import { header } from "./headers.ts";
import { RelayRefusal } from "./relay-options.ts";

function payloadOf(chunked: string): string {
  let payload = "";
  new ChunkedScanner().scan(Buffer.from(chunked), 0, (part) => (payload += part));
  return payload;
}

const GET = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

describe("local answers", () => {
  test("have a body except for HEAD, and keep the connection open", async () => {
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

  test("become a 500 if a header contains a line break", async () => {
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
      "any other error",
      Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:80"), { code: "ECONNREFUSED" }),
      "HTTP/1.1 502 Bad Gateway",
      "The upstream could not be reached (ECONNREFUSED).\n",
    ],
  ])("report %s", async (_name, error, line, text) => {
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

  test("are a 502 if decide throws or rejects", async () => {
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
    expect(calls).toBe(2);
  });

  test("precede a handed-over connection, which keeps its early bytes", async () => {
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

describe("response hooks", () => {
  const upper = () => new Transform({ transform: (chunk, _encoding, done) => done(null, Buffer.from(chunk.toString().toUpperCase())) });
  /** Holds back the last byte until the next arrives, like a transform that searches across chunk borders. */
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
  ])("%s changes the payload in every framing", async (_name, make, expected) => {
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

  test("a hook that throws or writes a line break is a 502 without its text", async () => {
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

test("counts bytes as they pass, heads included", async () => {
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
