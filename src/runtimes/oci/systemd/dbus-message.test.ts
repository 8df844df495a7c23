import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tries } from "../../../../test/support/thorough.ts";
import { CaissonError } from "../../../contract/error/error.ts";
import { decodeMessage, encodeCall } from "./dbus-message.ts";
import { marshal, unmarshal } from "./dbus-value.ts";

/** What libdbus's own `dbus-send` writes for one value of each of our types. */
const fromDbusSend = Buffer.from(
  "6c0100013a000000010000008600000001016f00190000002f6f72672f667265656465736b746f702f73797374656d64310000000000000002017300200000006f72672e667265656465736b746f702e73797374656d64312e4d616e6167657200000000000000000301730007000000476574556e6974000601730003000000612e62000000000008016700087375617576766f7900000007000000782e73636f70650007000000080000004d0000004e000000016200000100000001740000404b4c0000000000040000002f612f620009",
  "hex",
);
/** What libdbus, called from Python, writes to make systemd start a scope. */
const startTransientUnit = Buffer.from(
  "6c0100010001000001000000b600000001016f00190000002f6f72672f667265656465736b746f702f73797374656d64310000000000000006017300180000006f72672e667265656465736b746f702e73797374656d6431000000000000000002017300200000006f72672e667265656465736b746f702e73797374656d64312e4d616e616765720000000000000000030173001200000053746172745472616e7369656e74556e69740000000000000801670010737361287376296128736128737629290000001700000063616973736f6e2d306131622d73625f782e73636f706500040000006661696c00000000c8000000000000000b0000004465736372697074696f6e00017300000f00000043616973736f6e2073616e64626f780005000000536c69636500017300000000090000006170702e736c6963650000000400000050494473000261750000000004000000921000000800000044656c65676174650001620001000000000000000b000000436f6c6c6563744d6f6465000173000012000000696e6163746976652d6f722d6661696c65640000000000000f00000054696d656f757453746f70555365630001740000404b4c00000000000000000000000000",
  "hex",
);
const scopeBody = [
  "caisson-0a1b-sb_x.scope",
  "fail",
  [
    ["Description", { signature: "s", value: "Caisson sandbox" }],
    ["Slice", { signature: "s", value: "app.slice" }],
    ["PIDs", { signature: "au", value: [4242] }],
    ["Delegate", { signature: "b", value: true }],
    ["CollectMode", { signature: "s", value: "inactive-or-failed" }],
    ["TimeoutStopUSec", { signature: "t", value: 5_000_000n }],
  ],
  [],
];

describe("a D-Bus call", () => {
  it("is encoded byte for byte as by libdbus", () => {
    const call = {
      destination: "a.b",
      path: "/org/freedesktop/systemd1",
      interface: "org.freedesktop.systemd1.Manager",
      member: "GetUnit",
      signature: "suauvvoy",
      body: ["x.scope", 7, [77, 78], { signature: "b", value: true }, { signature: "t", value: 5_000_000n }, "/a/b", 9],
    };
    expect(encodeCall(call, 1).toString("hex")).toBe(fromDbusSend.toString("hex"));
  });
  it("to start a scope has the same body as from libdbus", () => {
    const bodyBytes = startTransientUnit.readUInt32LE(4);
    expect(marshal("ssa(sv)a(sa(sv))", scopeBody).toString("hex")).toBe(startTransientUnit.subarray(-bodyBytes).toString("hex"));
  });
  it("from libdbus is decoded, but not before its last byte", () => {
    expect(decodeMessage(startTransientUnit)).toMatchObject({
      length: startTransientUnit.length,
      message: { type: "call", serial: 1, member: "StartTransientUnit", path: "/org/freedesktop/systemd1", body: scopeBody },
    });
    for (let length = 0; length < startTransientUnit.length; length++)
      expect(decodeMessage(startTransientUnit.subarray(0, length))).toBeNull();
  });
});

describe("malformed messages", () => {
  it.each([
    ["big-endian", (bytes: Buffer) => bytes.writeUInt8(0x42, 0)],
    ["of an unknown type", (bytes: Buffer) => bytes.writeUInt8(9, 1)],
    ["too large", (bytes: Buffer) => bytes.writeUInt32LE(0x7fffffff, 4)],
    ["with a header that is too large", (bytes: Buffer) => bytes.writeUInt32LE(0x7fffffff, 12)],
  ])("are rejected: %s", (_, spoil) => {
    const bytes = Buffer.from(startTransientUnit);
    spoil(bytes);
    expect(() => decodeMessage(bytes)).toThrow(expect.objectContaining({ code: "protocol" }));
  });
  it("lead to a message, a wait for more bytes, or `protocol`", () => {
    const spoiled = fc.array(fc.tuple(fc.nat(startTransientUnit.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(startTransientUnit);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
    fc.assert(
      fc.property(spoiled, (bytes) => {
        try {
          decodeMessage(bytes);
        } catch (error) {
          if (!(error instanceof CaissonError && error.code === "protocol")) throw error;
        }
      }),
      { numRuns: tries(2000) },
    );
  });
  it("are rejected with arrays of nothing or endless variants", () => {
    expect(() => unmarshal("a()", Buffer.from("0800000000000000", "hex"))).toThrow(/array/);
    expect(() => unmarshal("v", Buffer.from("017600".repeat(40), "hex"))).toThrow(/nested/);
    expect(() => unmarshal("(s", Buffer.alloc(8))).toThrow(/signature/);
  });
});
