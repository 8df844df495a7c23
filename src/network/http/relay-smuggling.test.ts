import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectClient, startRelayRig } from "../../../test/support/http-relay-rig.ts";
import { tries } from "../../../test/support/thorough.ts";
import { relayHttp } from "./relay.ts";

describe("a request that hides another", () => {
  const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
  const post = (headers: string, body: string) => `POST /seen HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
  const corpus: Record<string, string> = {
    "CL.TE": post("Content-Length: 6\r\nTransfer-Encoding: chunked", `0\r\n\r\n${hidden}`),
    "TE.CL": post("Transfer-Encoding: chunked\r\nContent-Length: 4", `5c\r\n${hidden}\r\n0\r\n\r\n`),
    "CL.CL": post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden),
    "TE.TE, the second unknown": post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", `0\r\n\r\n${hidden}`),
    "TE.TE, a list": post("Transfer-Encoding: chunked, x", `0\r\n\r\n${hidden}`),
    "TE with a space before the colon": post(`Transfer-Encoding : chunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE after a bare LF": post(`X: a\nTransfer-Encoding: chunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE after a bare CR": post(`X: a\rTransfer-Encoding: chunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE folded": post(`Transfer-Encoding:\r\n chunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE with a vertical tab": post(`Transfer-Encoding:\x0bchunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE with a NUL": post(`Transfer-Encoding\0: chunked\r\nContent-Length: ${hidden.length}`, hidden),
    "TE in HTTP/1.0": `POST /seen HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    "a negative length": post("Content-Length: -1", hidden),
    "a length with a plus": post("Content-Length: +0", hidden),
    "a length in hexadecimal": post("Content-Length: 0x0", hidden),
    "a length with a line break": post(`Content-Length: 0\r\n ${hidden.length}`, hidden),
    "a line break in the target": `GET /seen\r\nX: HTTP/1.1\r\nHost: a\r\n\r\n${hidden}`,
    "a bare line break in the target": `GET /seen\nX: HTTP/1.1\r\nHost: a\r\n\r\n${hidden}`,
    "a huge chunk": post("Transfer-Encoding: chunked", `FFFFFFFFFFFFFFFFF\r\n${hidden}`),
    "a chunk that wraps around": post("Transfer-Encoding: chunked", `10000000000000000\r\n\r\n${hidden}`),
    "a negative chunk": post("Transfer-Encoding: chunked", `-1\r\n${hidden}`),
    "a chunk with 0x": post("Transfer-Encoding: chunked", `0x0\r\n\r\n${hidden}`),
    "a chunk ended by LF": post("Transfer-Encoding: chunked", `0\n\n${hidden}`),
    "a chunk extension with a line break": post("Transfer-Encoding: chunked", `0;a\n${hidden}\r\n\r\n`),
    "a chunk size followed by a space": post("Transfer-Encoding: chunked", `0 \r\n\r\n${hidden}`),
    "chunk data with a byte too many": post("Transfer-Encoding: chunked", `1\r\nab\r\n0\r\n\r\n${hidden}`),
    "a length among the trailers": post("Transfer-Encoding: chunked", `0\r\nContent-Length: 3\r\n\r\n${hidden}`),
    "two Hosts": `GET /seen HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${hidden}`,
    "a URL for another Host": `GET http://b/seen HTTP/1.1\r\nHost: a\r\n\r\n${hidden}`,
    "no Host": `GET /seen HTTP/1.1\r\n\r\n${hidden}`,
    "HTTP/0.9": `GET /seen\r\n\r\n${hidden}`,
    "HTTP/2": `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`,
  };

  test.each(Object.entries(corpus))("%s: is refused, and nothing hidden arrives", async (_name, text) => {
    for (const size of [text.length, 7]) {
      let received = "";
      let refusals = 0;
      const decided: string[] = [];
      await using rig = await startRelayRig({
        upstream: (socket) => socket.on("data", (chunk) => (received += chunk.toString("latin1"))),
        forward: (head) => {
          decided.push(head.target);
          return {};
        },
        onBadRequest: () => (refusals += 1),
      });
      using client = await rig.connect();
      for (let at = 0; at < text.length; at += size) client.send(Buffer.from(text.slice(at, at + size), "latin1"));
      const { text: answer } = await client.closed();
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(answer.match(/HTTP\/1\.1 [0-9]/g)).toHaveLength(1);
      expect(answer).toContain("Connection: close");
      expect(refusals).toBe(1);
      expect(decided).not.toContain("/hidden");
      // A body that becomes invalid midway may have been passed on up to that point, but never to its end.
      expect(received).not.toMatch(/hidden|0\r\n\r\n$/);
    }
  });
});

const PATIENCE_MS = 2_000;

interface Seen {
  method: string;
  target: string;
  body: string;
}

describe("compared with Node's own server", () => {
  let server: Server;
  let port: number;
  let seen: Seen[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      let body = "";
      request.setEncoding("latin1");
      request.on("data", (text) => (body += text));
      request.on("end", () => {
        seen.push({ method: request.method ?? "", target: request.url ?? "", body });
        response.end(`answer to ${request.url}`);
      });
    });
    server.on("clientError", (_error, socket) => socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as { port: number }).port;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  /**
   * Sends requests and returns what the server received. A damaged request may announce a body that never arrives, so
   * we do not wait long for it.
   */
  const sender = (to: number) => async (pieces: readonly Buffer[]) => {
    seen = [];
    const mine = seen;
    using client = await connectClient(to);
    for (const piece of pieces) client.send(piece);
    client.send("GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const quiet = Promise.withResolvers<null>();
    const timer = setTimeout(quiet.resolve, PATIENCE_MS, null);
    client.socket.on("data", () => timer.refresh());
    const closed = await Promise.race([client.closed(), quiet.promise]);
    clearTimeout(timer);
    server.closeAllConnections();
    return {
      whole: closed !== null,
      seen: mine,
      answered: [...client.text().matchAll(/answer to (\S+?)(?=HTTP|\r|$)/g)].map((match) => match[1]),
    };
  };

  async function relayPort(): Promise<number> {
    const { createServer: listen } = await import("node:net");
    const relays: Promise<void>[] = [];
    const sockets: Socket[] = [];
    const front = listen({ allowHalfOpen: true }, (client) => {
      relays.push(
        relayHttp(client, {
          decide: (head) => ({
            kind: "forward",
            key: "node",
            request: head,
            connect: () =>
              new Promise((resolve, reject) => {
                const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => resolve(socket));
                sockets.push(socket);
                socket.once("error", reject);
              }),
          }),
        }),
      );
    });
    await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(relays);
      await new Promise((resolve) => front.close(resolve));
    });
    return (front.address() as { port: number }).port;
  }

  const body = fc.stringMatching(/^[ -~\r\n]{0,60}$/);
  const path = fc.stringMatching(/^\/[a-z0-9?=&%+~._-]{0,20}$/);
  const extra = fc.constantFrom("", "X-A: b\r\n", "x-a:b\r\n", "X-A:  b \t\r\nAccept: */*\r\n", "Cookie: a=b; c=d\r\n", "X-Empty:\r\n");
  const chunk = (text: string) => (text === "" ? "" : `${text.length.toString(16)}\r\n${text}\r\n`);
  const ordinary = fc.oneof(
    fc
      .tuple(fc.constantFrom("GET", "DELETE", "OPTIONS", "PROPFIND"), path, extra)
      .map(([method, target, more]) => `${method} ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`),
    fc
      .tuple(fc.constantFrom("POST", "PUT", "GET"), path, extra, body)
      .map(
        ([method, target, more, text]) => `${method} ${target} HTTP/1.1\r\n${more}Host: a\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      ),
    fc
      .tuple(path, extra, fc.array(body, { maxLength: 4 }), fc.constantFrom("", "X-Sum: 1\r\n"))
      .map(
        ([target, more, parts, trailer]) =>
          `POST ${target} HTTP/1.1\r\nHost: a\r\n${more}Transfer-Encoding: chunked\r\n\r\n${parts.map(chunk).join("")}0\r\n${trailer}\r\n`,
      ),
  );
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 });
  const cut = (text: string, sizes: readonly number[]) => {
    const pieces: Buffer[] = [];
    for (let at = 0, i = 0; at < text.length; at += sizes[i % sizes.length] as number, i += 1) {
      pieces.push(Buffer.from(text.slice(at, at + (sizes[i % sizes.length] as number)), "latin1"));
    }
    return pieces;
  };

  test("splits ordinary requests the same way", async () => {
    const direct = sender(port);
    const relayed = sender(await relayPort());
    await fc.assert(
      fc.asyncProperty(fc.array(ordinary, { minLength: 1, maxLength: 5 }), cuts, async (requests, sizes) => {
        const pieces = cut(requests.join(""), sizes);
        const there = await direct(pieces);
        const here = await relayed(pieces);
        expect(here).toEqual(there);
        expect(here.whole).toBe(true);
        expect(here.seen).toHaveLength(requests.length + 1);
      }),
      { numRuns: tries(60) },
    );
  });

  test("never splits damaged requests differently", async () => {
    const direct = sender(port);
    const relayed = sender(await relayPort());
    const damage = fc.constantFrom(
      "\r\n",
      "\n",
      "\r",
      " ",
      "\t",
      "\0",
      ":",
      "0",
      "5",
      "-",
      "chunked",
      "Content-Length: 3\r\n",
      "Transfer-Encoding: chunked\r\n",
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(ordinary, { minLength: 1, maxLength: 3 }),
        damage,
        fc.nat(),
        fc.nat(2),
        async (requests, what, where, drop) => {
          const text = requests.join("");
          const at = where % text.length;
          const pieces = [Buffer.from(text.slice(0, at) + what + text.slice(at + drop), "latin1")];
          const there = await direct(pieces);
          const here = await relayed(pieces);
          const common = Math.min(there.seen.length, here.seen.length);
          expect(here.seen.slice(0, common)).toEqual(there.seen.slice(0, common));
        },
      ),
      { numRuns: tries(150) },
    );
  });

  test("answers garbage or closes the connection, without hanging", async () => {
    const port = await relayPort();
    const pieces = fc.constantFrom(
      "GET / HTTP/1.1\r\n",
      "Host: a\r\n",
      "\r\n",
      "\n",
      "\0",
      "Content-Length: 5\r\n",
      "Transfer-Encoding: chunked\r\n",
      "5\r\nabcde\r\n",
      "0\r\n\r\n",
      "\xff",
      "POST /x HTTP/1.0\r\n",
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.array(pieces).map((parts) => parts.join("")),
          fc.string({ unit: "binary-ascii" }),
        ),
        async (text) => {
          using client = await connectClient(port);
          client.socket.end(Buffer.from(text, "latin1"));
          await client.closed();
        },
      ),
      { numRuns: tries(100) },
    );
  });
});
