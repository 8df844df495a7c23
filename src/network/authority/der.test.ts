import fc from "fast-check";
import { expect, test } from "vitest";
import { der, derContent, derItems } from "./der.ts";

test.each([
  ["a small integer", der.integer(2), "020102"],
  ["an integer whose first bit is set", der.integer(Buffer.of(0x80)), "02020080"],
  ["an integer with zeros in front", der.integer(Buffer.of(0, 0, 0x7f)), "02017f"],
  ["zero", der.integer(0), "020100"],
  ["true", der.boolean(true), "0101ff"],
  ["an object id", der.objectId("1.2.840.10045.4.3.2"), "06082a8648ce3d040302"],
  ["a long object id", der.objectId("2.5.29.37"), "0603551d25"],
  ["the last time with two digits", der.time(new Date("2049-12-31T23:59:59Z")), "170d3439313233313233353935395a"],
  ["the first with four", der.time(new Date("2050-01-01T00:00:00Z")), "180f32303530303130313030303030305a"],
  ["an explicit tag", der.explicit(0, der.integer(2)), "a003020102"],
  ["an implicit tag", der.implicit(2, Buffer.from("a")), "820161"],
  ["a bit string", der.bitString(Buffer.of(6), 1), "03020106"],
  ["nothing", der.sequence(), "3000"],
])("%s", (_name, bytes, hex) => expect(bytes.toString("hex")).toBe(hex));

test("decodes what it encoded, for every length", () => {
  const contents = fc.array(
    fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(...[127, 128, 255, 256, 65_536].map((n) => new Uint8Array(n)))),
  );
  fc.assert(
    fc.property(contents, (parts) => {
      const items = derItems(der.sequence(...parts.map((part) => der.octetString(Buffer.from(part)))));
      expect(items.map((item) => derContent(item).toString("hex"))).toEqual(parts.map((part) => Buffer.from(part).toString("hex")));
    }),
    { numRuns: 200 },
  );
});

test.each(["", "30", "3001", "3080", "30820100", "3003020500", "3085000000000100"])("rejects %s as malformed", (hex) => {
  expect(() => derItems(Buffer.from(hex, "hex"))).toThrowError(expect.objectContaining({ code: "invalid" }));
});
