import { BlockList } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { createFakeNames } from "./fake-names.ts";

const A = 1;
const AAAA = 28;

function question(name: string, type = A, { flags = 0x0100, extra = Buffer.alloc(0), additional = 0 } = {}): Buffer {
  const labels =
    name === "" ? [] : name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")]));
  const header = Buffer.alloc(12);
  header.writeUInt16BE(0xbeef, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(additional, 10);
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, type, 0, 1]), extra]);
}

/** Returns the address in an answer, or null if it has none. */
function addressIn(answer: Buffer | null): string | null {
  if (answer === null) throw new Error("no answer");
  if (answer.readUInt16BE(6) === 0) return null;
  const type = answer.readUInt16BE(answer.lastIndexOf(Buffer.from([0xc0, 12])) + 2);
  return type === A
    ? [...answer.subarray(-4)].join(".")
    : answer
        .subarray(-16)
        .toString("hex")
        .replaceAll(/(.{4})(?=.)/g, "$1:");
}

describe("names in transparent mode", () => {
  const names = createFakeNames({ namesMax: 100 });
  const ask = (name: string, type = A) => addressIn(names.answerName(question(name, type)));

  test("have one address of each family, which maps back to the name", () => {
    const [ipv4, ipv6] = [ask("site.test"), ask("site.test", AAAA)];
    const ranges = new BlockList();
    for (const [range, family] of [
      ["198.18.0.0/15", "ipv4"],
      ["fd63:6169:7373:6f6e::/64", "ipv6"],
    ] as const) {
      const [first = "", bits] = range.split("/");
      ranges.addSubnet(first, Number(bits), family);
    }
    expect(ranges.check(ipv4 ?? "", "ipv4") && ranges.check(ipv6 ?? "", "ipv6")).toBe(true);
    expect(ask("SITE.test")).toBe(ipv4);
    expect(names.nameOf(ipv4 as string)).toEqual({ kind: "name", text: "site.test" });
    expect(names.nameOf(ipv6 as string)).toEqual({ kind: "name", text: "site.test" });
    expect(ask("other.test")).not.toBe(ipv4);
  });

  test("are answered with the question byte for byte", () => {
    const query = question("SiTe.TeSt");
    const answer = names.answerName(query) as Buffer;
    expect(answer.readUInt16BE(0)).toBe(0xbeef);
    expect(answer.readUInt16BE(2)).toBe(0x8180);
    expect(answer.subarray(12, query.length)).toEqual(query.subarray(12));
  });

  test("do not exist for other addresses", () => {
    for (const address of [
      "198.18.0.0",
      "198.19.255.255",
      "198.20.0.1",
      "1.1.1.1",
      "fd63:6169:7373:6f6e::ffff",
      "fd63:6169:7373:6f6e:1::1",
      "::1",
      "nonsense",
    ]) {
      expect(names.nameOf(address), address).toBeNull();
    }
  });

  test("have no records of other types, and localhost stays loopback", () => {
    for (const type of [2, 5, 12, 15, 16, 33, 65]) expect(ask("site.test", type)).toBeNull();
    expect(ask("", 2)).toBeNull();
    expect(ask("localhost")).toBe("127.0.0.1");
    expect(ask("a.localhost", AAAA)).toBe("0000:0000:0000:0000:0000:0000:0000:0001");
  });

  test("can be requested with EDNS", () => {
    const opt = Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    expect(addressIn(names.answerName(question("site.test", A, { extra: opt, additional: 1 })))).toMatch(/^198/);
    expect(names.answerName(question("site.test", A, { extra: Buffer.concat([opt, opt]), additional: 1 }))).toBeNull();
  });

  test.each([
    ["an empty message", Buffer.alloc(0)],
    ["a response", question("site.test", A, { flags: 0x8180 })],
    ["an update", question("site.test", A, { flags: 0x2800 })],
    ["trailing bytes", question("site.test", A, { extra: Buffer.alloc(1) })],
    ["a label with a space", question("si te.test")],
    ["a pointer", Buffer.concat([question("").subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])])],
    ["a name that is too long", question(`${"a".repeat(60)}.`.repeat(4).concat("a".repeat(20)))],
    ["a truncated label", question("site.test").subarray(0, 16)],
    ["an empty name", question("")],
  ])("are not resolved for %s", (_what, message) => expect(names.answerName(message)).toBeNull());

  test("are bounded in number, and the least recently used are forgotten", () => {
    const few = createFakeNames({ namesMax: 3 });
    const addressFor = (name: string) => addressIn(few.answerName(question(name))) as string;
    const [a, b, c] = [addressFor("a.test"), addressFor("b.test"), addressFor("c.test")];
    expect(few.nameOf(a)?.text).toBe("a.test");
    const d = addressFor("d.test");
    expect([a, b, c, d].map((address) => few.nameOf(address)?.text)).toEqual(["a.test", undefined, "c.test", "d.test"]);
    for (let index = 0; index < tries(200_000); index++) few.answerName(question(`n${index}.test`));
    expect(few.nameOf(addressFor("last.test"))?.text).toBe("last.test");
  });

  test("never cause an exception, whatever the question's bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const answer = names.answerName(Buffer.from(bytes));
        if (answer !== null) expect(answer.readUInt16BE(2) & 0x8000).toBe(0x8000);
      }),
      { numRuns: tries(2000) },
    );
    const real = question("site.test");
    fc.assert(
      fc.property(
        fc.nat(real.length - 1),
        fc.nat(255),
        (at, byte) => void names.answerName(Buffer.from(real.map((old, index) => (index === at ? byte : old)))),
      ),
    );
  });
});
