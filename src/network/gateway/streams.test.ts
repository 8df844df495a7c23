import fc from "fast-check";
import { expect, test } from "vitest";
import { cpuMs } from "../../../test/support/cpu-time.ts";
import { matchesStars } from "../../lib/wildcards.ts";
import { createKeyRedactor } from "./key-redactor.ts";
import { createSseSplitter } from "./sse-splitter.ts";

/** Splits bytes at any positions. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
}
const places = fc.array(fc.nat(), { maxLength: 12 });

test("splits a stream into the same events however it is cut, without losing a byte", () => {
  const line = fc.constantFrom("data: {}", "data:x", "event: a", ": note", "data: é\u{1f600}", "id: 1");
  const event = fc.tuple(fc.array(line, { minLength: 1, maxLength: 4 }), fc.constantFrom("\n", "\r\n"));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 6 }), fc.constantFrom("", "data: unfinished"), places, (events, tail, at) => {
      const text = events.map(([lines, newline]) => lines.join(newline) + newline + newline).join("") + tail;
      const expected = events.map(([lines]) =>
        lines.filter((each) => each.startsWith("data:")).map((each) => each.replace(/^data: ?/, "")),
      );
      const splitter = createSseSplitter({ eventBytesMax: 1000 });
      const got = cut(Buffer.from(text), at).flatMap((chunk) => splitter.push(chunk));
      expect(got.map(({ data }) => data)).toEqual(expected.map((data) => (data.length === 0 ? null : data.join("\n"))));
      expect(Buffer.concat([...got.map(({ raw }) => raw), splitter.rest()]).toString()).toBe(text);
    }),
  );
});

test("passes on an oversized event without keeping it, and reads the next", () => {
  const splitter = createSseSplitter({ eventBytesMax: 20 });
  const text = `data: ${"x".repeat(100)}\n\ndata: next\n\n`;
  const got = cut(Buffer.from(text), [10, 25, 60, 90]).flatMap((chunk) => splitter.push(chunk));
  expect(Buffer.concat(got.map(({ raw }) => raw)).toString()).toBe(text);
  expect(got.filter(({ data }) => data !== null).map(({ data }) => data)).toEqual(["next"]);
});

test("redacts a key however the bytes are cut, even in base64", () => {
  const key = "sk-aa-aab-aaab-0123";
  const piece = fc.constantFrom(
    key,
    "sk-aa-",
    "a",
    "-",
    "Zm9v",
    ...["", "x", "xy"].map((before) => Buffer.from(`${before}${key}!`).toString("base64")),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), places, (pieces, at) => {
      const bytes = Buffer.from(pieces.join(" "));
      const redactor = createKeyRedactor(key);
      const out = Buffer.concat([...cut(bytes, at).map((chunk) => redactor.push(chunk)), redactor.rest()]).toString();
      expect(out).toHaveLength(bytes.length);
      expect(out).not.toContain(key);
      for (const word of out.split(" ")) expect(Buffer.from(word, "base64").toString("latin1")).not.toContain("aab-aaab-0");
      expect(out.replaceAll(/\*+/g, "")).not.toMatch(/0123/);
    }),
  );
});

test("leaves short words and the beginning of a key alone", () => {
  expect(createKeyRedactor("ollama").text("ask ollama")).toBe("ask ollama");
  const redactor = createKeyRedactor("sk-0123456789");
  expect(Buffer.concat([redactor.push(Buffer.from("say sk-012")), redactor.push(Buffer.from("x sk-")), redactor.rest()]).toString()).toBe(
    "say sk-012x sk-",
  );
});

test.each([
  ["claude-*", "claude-x", true],
  ["*", "", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*a", "a", false],
  ["a*ab", "aab", true],
  ["gpt-4", "gpt-4o", false],
  ["*mini", "gpt-mini-x", false],
  ["a.c", "abc", false],
])("%s against %s: %s", (pattern, name, fits) => expect(matchesStars(pattern, name)).toBe(fits));

test("matches a hostile pattern quickly", () => {
  const startMs = cpuMs();
  expect(matchesStars("*a".repeat(100), `${"a".repeat(99)}b`)).toBe(false);
  expect(cpuMs() - startMs).toBeLessThan(1000);
});
