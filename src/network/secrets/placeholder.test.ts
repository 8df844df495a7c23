import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { createPlaceholders, makePlaceholder } from "./placeholder.ts";

test.each([
  ["a GitHub token", "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A1e2X", /^ghp_[A-Za-z0-9]{36}$/],
  ["a fine-grained GitHub token", `github_pat_${"11ABCDEFG0".repeat(8)}`, /^github_pat_[A-Z0-9]{80}$/],
  ["an Anthropic key", `sk-ant-api03-${"aZ09".repeat(20)}-AA`, /^sk-ant-[A-Za-z0-9]{5}-[A-Za-z0-9]{80}-[A-Za-z0-9]{2}$/],
  [
    "a Slack bot token",
    "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    /^xoxb-[A-Za-z0-9]{12}-[A-Za-z0-9]{13}-[A-Za-z0-9]{24}$/,
  ],
  [
    "a JWT",
    `eyJhbGciOiJIUzI1NiJ9.${"eyJzdWIi".repeat(4)}.${"s0-_".repeat(10)}`,
    /^[A-Za-z0-9]{20}\.[A-Za-z0-9]{32}\.([A-Za-z0-9]{2}-_){10}$/,
  ],
  ["a UUID", "deadbeef-0000-4000-8000-0123456789ab", /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/],
  ["hexadecimal", "0123456789abcdef0123456789abcdef", /^[0-9a-f]{32}$/],
  ["digits", "1234567890", /^[0-9]{10}$/],
  ["a short password", "pass-w0rd", /^[a-z0-9]{9}$/],
  ["letters that a header cannot keep through every encoding", "p@ss w0rd!", /^[a-z0-9]{10}$/],
  ["nothing but dots", ".".repeat(30), /^[A-Za-z0-9]{30}$/],
  ["a prefix that would leave too little", "sk-ant-0123456789", /^[a-z0-9]{17}$/],
])("has the shape of %s", (_name, value, shape) => {
  const placeholder = makePlaceholder(value, []);
  expect(placeholder).toMatch(shape);
  expect(makePlaceholder(value, [])).not.toBe(placeholder);
});

test("has 40 characters if the value is not known", () => {
  expect(makePlaceholder(null, [])).toMatch(/^caisson_[A-Za-z0-9]{32}$/);
});

test("is as long as the value, differs from it, and survives every encoding", () => {
  const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
  const value = fc.oneof(
    fc.string({ unit: printable, minLength: 8, maxLength: 100 }),
    fc.string({ unit: fc.constantFrom("0", "_", "-", "."), minLength: 8, maxLength: 40 }),
  );
  fc.assert(
    fc.property(value, (text) => {
      const placeholder = makePlaceholder(text, []);
      expect(placeholder).toHaveLength(text.length);
      expect(placeholder).not.toBe(text);
      expect(encodeURIComponent(placeholder)).toBe(placeholder);
    }),
    { numRuns: tries(1000) },
  );
});

test("keeps stored placeholders, and creates missing ones once", () => {
  const stored = { A: "caisson_stored_placeholder" };
  const { all } = createPlaceholders({ names: ["A", "B", "constructor"], stored, peek: (name) => (name === "B" ? "12345678" : null) });
  expect(all().A).toBe(stored.A);
  expect(all().B).toMatch(/^[0-9]{8}$/);
  expect(all().constructor).toMatch(/^caisson_/);
  const first = all();
  expect(all()).toBe(first);
});

test.each(["", "short", "with space in it", "line\nbreak-and-more", "ümlaut-and-more"])("rejects the stored placeholder %j", (text) => {
  expect(() => createPlaceholders({ names: ["A"], stored: { A: text }, peek: () => null })).toThrowError(
    expect.objectContaining({ code: "invalid" }),
  );
});
