import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { BodyScanner, requestFraming, responseFraming } from "./body.ts";
import { ChunkedScanner, encodeChunk, LAST_CHUNK } from "./chunked-coding.ts";
import { parseRequestHead, parseResponseHead } from "./head.ts";
import { HeadReader } from "./head-reader.ts";
import { HEAD_BYTES_MAX, HttpSyntaxError } from "./headers.ts";

const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 100 });

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const size = sizes[i % sizes.length] as number;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

/** Returns the contents of a chunked body given in these pieces, and the bytes left over. */
function scanChunked(pieces: readonly Buffer[]) {
  const scanner = new ChunkedScanner();
  const payload: Buffer[] = [];
  let rest = "";
  for (const piece of pieces) {
    const end = scanner.scan(piece, 0, (part) => payload.push(part));
    rest += piece.subarray(end).toString("latin1");
  }
  return { payload: Buffer.concat(payload).toString("latin1"), rest, done: scanner.done, trailers: scanner.trailers };
}

describe("chunked", () => {
  const payloads = fc.array(fc.uint8Array({ minLength: 1, maxLength: 100 }), { maxLength: 8 });
  const trailer = fc.constantFrom("", "X-Sum: 1\r\n", "A: b\r\nC:\r\n");

  test("reads the same payload, trailers and rest however the bytes are cut", () => {
    fc.assert(
      fc.property(payloads, trailer, cuts, (parts, trailers, sizes) => {
        const last = Buffer.from(`0;ext="a b"\r\n${trailers}\r\nGET / HTTP/1.1`, "latin1");
        const bytes = Buffer.concat([...parts.map((part) => encodeChunk(Buffer.from(part))), last]);
        const expected = scanChunked([bytes]);
        expect(expected).toMatchObject({ payload: Buffer.concat(parts).toString("latin1"), rest: "GET / HTTP/1.1", done: true });
        expect(expected.trailers).toHaveLength(trailers.split("\r\n").length - 1);
        expect(scanChunked(cut(bytes, sizes))).toEqual(expected);
      }),
    );
  });

  const refused: Record<string, string> = {
    "a size of 17 digits": "FFFFFFFFFFFFFFFFF\r\n",
    "a size beyond what numbers can hold": "FFFFFFFFFFFFFFFF\r\n",
    "a size with endless zeros": "0000000000000\r\n",
    "a negative size": "-5\r\n",
    "a size with a plus": "+5\r\n",
    "a size with 0x": "0x5\r\n",
    "no size": "\r\n",
    "only an extension": ";a\r\n",
    "a space before the size": " 5\r\n",
    "a space after the size": "5 \r\n",
    "a space before the extension": "5 ;a\r\n",
    "a size that ends in LF": "5\nabcde\r\n",
    "a size that ends in CR": "5\rabcde\r\n",
    "an LF in an extension": "5;a\nabcde\r\n",
    "a CR in an extension": "5;a\rb\r\nabcde\r\n",
    "a NUL in an extension": "5;a\0\r\n",
    "an endless extension": `5;${"a".repeat(300)}\r\n`,
    "a chunk longer than its size": "5\r\nabcdef\r\n",
    "a chunk shorter than its size": "5\r\nabc\r\n0\r\n\r\n",
    "a chunk that ends in LF": "5\r\nabcde\n",
    "a chunk that ends in CR": "5\r\nabcde\r0\r\n\r\n",
    "a letter that is not a digit": "5g\r\n",
    "a trailer that ends in LF": "0\r\nA: b\n\r\n",
    "an end in LF": "0\r\n\n",
    "a trailer without a colon": "0\r\nA\r\n\r\n",
    "a trailer with a NUL": "0\r\nA: \0\r\n\r\n",
    "a folded trailer": "0\r\nA: b\r\n c\r\n\r\n",
    "a length as a trailer": "0\r\nContent-Length: 3\r\n\r\n",
    "an encoding as a trailer": "0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a Host as a trailer": "0\r\nHost: b\r\n\r\n",
    "endless trailers": `0\r\nA: ${"b".repeat(9000)}\r\n\r\n`,
  };
  test.each(Object.entries(refused))("refuses %s", (_name, text) => {
    const bytes = Buffer.from(text, "latin1");
    expect(() => scanChunked([bytes])).toThrow(HttpSyntaxError);
    expect(() => scanChunked(cut(bytes, [1]))).toThrow(HttpSyntaxError);
  });

  test("treats garbage the same however it is cut", () => {
    const pieces = fc.constantFrom("5", "a", "\r\n", "\r", "\n", ";", "0\r\n", "abcde", " ", "\0", "A: b\r\n", "F");
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), cuts, (parts, sizes) => {
        const bytes = Buffer.from(parts.join(""), "latin1");
        const outcomes = [[bytes], cut(bytes, sizes)].map((chunks) => {
          try {
            return scanChunked(chunks);
          } catch (error) {
            expect(error).toBeInstanceOf(HttpSyntaxError);
            return "refused";
          }
        });
        expect(outcomes[1]).toEqual(outcomes[0]);
      }),
      { numRuns: tries(1000) },
    );
  });
});

describe("body framing", () => {
  const framingOf = (text: string, method = "GET") => responseFraming(parseResponseHead(Buffer.from(`${text}\r\n\r\n`)), method);

  test.each([
    ["HTTP/1.1 200 OK\r\nContent-Length: 7", "GET", { kind: "length", bytes: 7 }],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "GET", { kind: "chunked" }],
    ["HTTP/1.1 200 OK", "GET", { kind: "close" }],
    ["HTTP/1.0 200 OK", "POST", { kind: "close" }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 7", "HEAD", { kind: "none" }],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "HEAD", { kind: "none" }],
    ["HTTP/1.1 204 No\r\nContent-Length: 7", "GET", { kind: "none" }],
    ["HTTP/1.1 304 No\r\nContent-Length: 7", "GET", { kind: "none" }],
    ["HTTP/1.1 100 Go", "POST", { kind: "none" }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 7", "CONNECT", { kind: "none" }],
    ["HTTP/1.1 403 No\r\nContent-Length: 7", "CONNECT", { kind: "length", bytes: 7 }],
  ])("of %j to %s", (text, method, expected) => {
    expect(framingOf(text, method)).toMatchObject(expected);
  });

  test("finds no body in a request that states no length", () => {
    const head = parseRequestHead(Buffer.from("POST / HTTP/1.1\r\nHost: a\r\n\r\n"));
    expect(requestFraming(head)).toEqual({ kind: "none", bytes: 0 });
  });

  test("follows a length over any cuts, and no further", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), cuts, (bytes, sizes) => {
        const scanner = new BodyScanner();
        scanner.start({ kind: "length", bytes });
        let scannedBytes = 0;
        for (const piece of cut(Buffer.alloc(bytes + 50, 1), sizes)) scannedBytes += scanner.scan(piece, 0);
        expect(scanner.done).toBe(true);
        expect(scannedBytes).toBe(bytes);
      }),
    );
  });

  test("completes a read-until-close body only when the sender ends", () => {
    const scanner = new BodyScanner();
    scanner.start({ kind: "length", bytes: 5 });
    scanner.scan(Buffer.from("abc"), 0);
    expect(scanner.end()).toBe(false);
    scanner.start({ kind: "close", bytes: 0 });
    expect(scanner.scan(Buffer.from("abc"), 0)).toBe(3);
    expect(scanner.done).toBe(false);
    expect(scanner.end()).toBe(true);
    scanner.start({ kind: "chunked", bytes: 0 });
    scanner.scan(Buffer.from("3\r\nabc\r\n0\r\n"), 0);
    expect(scanner.end()).toBe(false);
    expect(scanner.scan(LAST_CHUNK.subarray(3), 0)).toBe(2);
    expect(scanner.end()).toBe(true);
  });
});

describe("the head reader", () => {
  const text = "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";

  test("reads the same heads however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }), cuts, (emptyLines, sizes) => {
        const bytes = Buffer.from(emptyLines.map((empty) => (empty ? `\r\n${text}` : text)).join(""), "latin1");
        const reader = new HeadReader({ emptyLineBefore: true });
        const heads: string[] = [];
        for (const piece of cut(bytes, sizes)) {
          for (let rest = piece; rest.length > 0; ) {
            const head = reader.push(rest);
            if (head === null) break;
            heads.push(head.toString("latin1"));
            rest = reader.rest;
          }
        }
        expect(heads).toEqual(emptyLines.map(() => text));
        expect(reader.begun).toBe(false);
      }),
    );
  });

  test.each(["\x16\x03\x01", "GET / HTTP/1.1\nHost", "\n", "\r\n\r\n", "\rG", "GET /\0"])("rejects %j before it is complete", (start) => {
    for (const pieces of [[Buffer.from(start)], cut(Buffer.from(start), [1])]) {
      const reader = new HeadReader({ emptyLineBefore: true });
      expect(() => pieces.map((piece) => reader.push(piece))).toThrow(HttpSyntaxError);
    }
  });

  test("rejects an empty line before a response", () => {
    expect(() => new HeadReader().push(Buffer.from("\r\nHTTP/1.1 200"))).toThrow(HttpSyntaxError);
  });

  test("accepts a head of the maximum size, and not one byte more", () => {
    const fill = (bytes: number) => Buffer.from(`GET / HTTP/1.1\r\nX: ${"a".repeat(bytes - 23)}\r\n\r\n`);
    expect(fill(HEAD_BYTES_MAX)).toHaveLength(HEAD_BYTES_MAX);
    for (const size of [1000, HEAD_BYTES_MAX * 2]) {
      expect(pushAll(cut(fill(HEAD_BYTES_MAX), [size]))).toHaveLength(HEAD_BYTES_MAX);
      expect(() => pushAll(cut(fill(HEAD_BYTES_MAX + 1), [size]))).toThrow(HttpSyntaxError);
    }
  });
});

function pushAll(pieces: readonly Buffer[]): Buffer | null {
  const reader = new HeadReader({ emptyLineBefore: true });
  return pieces.map((piece) => reader.push(piece)).at(-1) ?? null;
}
