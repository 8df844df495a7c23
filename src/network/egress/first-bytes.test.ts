import { duplexPair } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { beginningOf, nextBytes, readBeginning } from "./first-bytes.ts";

const kindOf = (text: string, bytesMax = 65_536) => beginningOf(Buffer.from(text, "latin1"), { bytesMax }).kind;

describe("protocol detection", () => {
  test.each([
    ["", "more"],
    ["G", "more"],
    ["GET /x", "more"],
    ["GET /x HTTP/1.1\r", "more"],
    ["GET /x HTTP/1.1\r\n", "http"],
    ["GET /x HTTP/1.0\n", "http"],
    ["GET /x HTTP/1\n", "http"],
    ["\r\n\r\nget\t/x  http/1.1 \r\n", "http"],
    ["M-SEARCH * HTTP/1.1\r\n", "http"],
    ["PRI * HTTP/2.0\r\n", "http2"],
    ["pri\t*  http/2 \n", "http2"],
    ["GET /x HTTP/2.0\r\n", "http"],
    ["GET /x HTTP/9\r\n", "http"],
    ["GET /x HTTP/1.\r\n", "http"],
    ["GET /x\r\n", "raw"],
    ["OPTIONS rtsp://x RTSP/1.0\r\n", "raw"],
    ["SSH-2.0-x\r\n", "raw"],
    ["\0", "raw"],
    ["\x05\x01", "raw"],
    ["\x16\x03", "more"],
    ["\x16\x02", "raw"],
    ["(lisp", "raw"],
  ])("%j is %s", (text, kind) => expect(kindOf(text)).toBe(kind));

  test("treats an endless line as raw", () => expect(kindOf("a".repeat(100), 100)).toBe("raw"));

  test("never changes its decision with more bytes, and decides within the limit", () => {
    const any = fc.oneof(
      fc.string({ maxLength: 80, unit: "binary-ascii" }),
      fc.string({ maxLength: 40 }).map((text) => `GET ${text} HTTP/1.1\r\nHost: x`),
    );
    fc.assert(
      fc.property(any, fc.nat(80), (text, cut) => {
        const [part, whole] = [kindOf(text.slice(0, cut), 200), kindOf(text, 200)];
        if (part !== "more") expect(whole).toBe(part);
        expect(kindOf(text.padEnd(300, "x"), 200)).not.toBe("more");
      }),
      { numRuns: tries(2000) },
    );
  });

  test("gives up on hundreds of tiny pieces", async () => {
    let pieces = 0;
    const wait = async () => ({ kind: "bytes", bytes: Buffer.from("a".repeat(Math.sign(++pieces))) }) as const;
    expect((await readBeginning({ first: Buffer.alloc(0), bytesMax: 65_536, wait })).beginning.kind).toBe("malformed");
    expect(pieces).toBeLessThan(300);
  });
});

describe("nextBytes", () => {
  test("reports bytes, an end, silence or the other stream, and loses nothing", async () => {
    const [near, far] = duplexPair();
    const [otherNear, otherFar] = duplexPair();
    near.write("one");
    expect(await nextBytes(far, { timeoutMs: 1000 })).toMatchObject({ kind: "bytes", bytes: Buffer.from("one") });
    expect(await nextBytes(far, { timeoutMs: 5 })).toEqual({ kind: "silent" });
    otherNear.write("hello");
    expect(await nextBytes(far, { timeoutMs: 1000, other: otherFar })).toEqual({ kind: "otherSpoke" });
    expect(String(otherFar.read())).toBe("hello");
    near.end("two");
    expect(await nextBytes(far, { timeoutMs: 1000 })).toMatchObject({ kind: "bytes", bytes: Buffer.from("two") });
    expect(await nextBytes(far, { timeoutMs: 1000 })).toEqual({ kind: "ended" });
    expect(await nextBytes(far, { timeoutMs: 1000 })).toEqual({ kind: "ended" });
  });
});
