import { duplexPair } from "node:stream";
import { connect } from "node:tls";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { parseClientHello } from "./client-hello.ts";

const MAX = 65_536;
const parse = (bytes: Buffer) => parseClientHello(bytes, MAX);

/** Returns the ClientHello that Node itself sends. */
async function realHello(servername?: string): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connect({ socket: near, ...(servername === undefined ? {} : { servername }), ALPNProtocols: ["h2", "http/1.1"] });
  client.on("error", () => {});
  const bytes = await new Promise<Buffer>((resolve) => far.once("data", resolve));
  client.destroy();
  return bytes;
}

/** Splits the handshake message of a hello into records of these sizes. */
function inRecords(hello: Buffer, sizes: readonly number[]): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0, index = 0; at < message.length; index++) {
    const part = message.subarray(at, at + (sizes[index % sizes.length] ?? 1));
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
    at += part.length;
  }
  return Buffer.concat(records);
}

/** Builds a minimal hello with these extensions. */
function madeHello(extensions: readonly (readonly [type: number, data: Buffer])[]): Buffer {
  const body = Buffer.concat(extensions.flatMap(([type, data]) => [u16(type), u16(data.length), data]));
  const message = Buffer.concat([
    u16(0x0303),
    Buffer.alloc(32),
    Buffer.from([0]),
    u16(2),
    u16(0x1301),
    Buffer.from([1, 0]),
    u16(body.length),
    body,
  ]);
  const handshake = Buffer.concat([Buffer.from([1, 0]), u16(message.length), message]);
  return Buffer.concat([Buffer.from([22, 3, 1]), u16(handshake.length), handshake]);
}
const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const sni = (name: string, type = 0): [number, Buffer] => {
  const bytes = Buffer.from(name, "latin1");
  const list = Buffer.concat([Buffer.from([type]), u16(bytes.length), bytes]);
  return [0, Buffer.concat([u16(list.length), list])];
};

describe("the ClientHello parser", () => {
  test("reads what Node sends, with and without a name", async () => {
    expect(parse(await realHello("API.Example.com"))).toEqual({ kind: "hello", serverName: "api.example.com" });
    expect(parse(await realHello())).toEqual({ kind: "hello", serverName: null });
  });

  test("waits for the whole message, however it is split into records", async () => {
    const hello = await realHello("example.com");
    for (let length = 0; length < hello.length; length++) expect(parse(hello.subarray(0, length)).kind).toBe("incomplete");
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 20 }), fc.nat(100), (sizes, more) => {
        const cut = Buffer.concat([inRecords(hello, sizes), Buffer.alloc(more, 7)]);
        expect(parse(cut)).toEqual({ kind: "hello", serverName: "example.com" });
      }),
    );
  });

  test("accepts a trailing dot and other extensions around the name", () => {
    expect(parse(madeHello([[0xfe0d, Buffer.alloc(40)], sni("example.com."), [16, Buffer.alloc(3)]]))).toEqual({
      kind: "hello",
      serverName: "example.com",
    });
    expect(parse(madeHello([]))).toEqual({ kind: "hello", serverName: null });
  });

  test.each([
    ["two names", madeHello([sni("a.example.com"), sni("b.example.com")])],
    ["a name of another type", madeHello([sni("a.example.com", 1)])],
    ["an empty name", madeHello([sni("")])],
    ["a name with a NUL", madeHello([sni("a.example.com\0.evil.net")])],
    ["a list with trailing bytes", madeHello([[0, Buffer.concat([sni("a.example.com")[1], Buffer.alloc(1)])]])],
    ["an extension longer than the rest", madeHello([[0, Buffer.from([0xff, 0xff])]])],
    ["an empty record", Buffer.concat([Buffer.from([22, 3, 1, 0, 0]), madeHello([])])],
    ["a record that is too long", Buffer.from([22, 3, 1, 0x40, 1])],
    ["an alert between its records", Buffer.concat([inRecords(madeHello([]), [10]).subarray(0, 15), Buffer.from([21, 3, 3, 0, 2, 2, 40])])],
    ["a ServerHello", Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
    ["a message above the limit", Buffer.from([22, 3, 1, 0, 4, 1, 2, 0, 0])],
  ])("rejects %s", (_what, bytes) => expect(parse(bytes).kind).toBe("malformed"));

  test("recognizes other protocols", () => {
    for (const text of ["GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x05\x01\x00", "\x16\x02\x01"])
      expect(parse(Buffer.from(text, "latin1")).kind).toBe("other");
  });

  test("never throws, never waits beyond the limit, and never changes its mind", () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.uint8Array({ maxLength: 400 }).map((rest) => Uint8Array.from([22, 3, 1, 0, 200, 1, 0, 0, 150, ...rest])),
    );
    fc.assert(
      fc.property(garbage, fc.nat(400), (bytes, cut) => {
        const whole = parseClientHello(Buffer.from(bytes), 256);
        if (bytes.length > 300) expect(whole.kind).not.toBe("incomplete");
        const part = parseClientHello(Buffer.from(bytes.slice(0, cut)), 256);
        if (part.kind !== "incomplete" && cut <= 256) expect(whole).toEqual(part);
      }),
      { numRuns: tries(3000) },
    );
  });

  test("returns a result for a real hello with any byte changed", async () => {
    const hello = await realHello("example.com");
    fc.assert(
      fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(hello);
        changed[at] = byte;
        expect(["incomplete", "other", "malformed", "hello"]).toContain(parse(changed).kind);
      }),
      { numRuns: tries(3000) },
    );
  });
});
