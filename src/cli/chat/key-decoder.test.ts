import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createKeyDecoder, type Key } from "./key-decoder.ts";

function keysOf(...pieces: string[]): Key[] {
  const decoder = createKeyDecoder();
  return [...pieces.flatMap((piece) => decoder.push(Buffer.from(piece))), ...decoder.flush()];
}
const press = (name: string) => ({ kind: "press", name });
const text = (words: string) => ({ kind: "text", text: words });

describe("the key decoder", () => {
  test.each([
    ["\r", "enter"],
    ["\x1b\r", "newline"],
    ["\n", "newline"],
    ["\x1b[13;2u", "newline"],
    ["\t", "tab"],
    ["\x7f", "backspace"],
    ["\x1b[3~", "delete"],
    ["\x1b[A", "up"],
    ["\x1bOB", "down"],
    ["\x1b[1;5C", "wordRight"],
    ["\x1bb", "wordLeft"],
    ["\x1b[H", "home"],
    ["\x1b[4~", "end"],
    ["\x03", "interrupt"],
    ["\x04", "endOfInput"],
    ["\x1b", "escape"],
  ])("decodes %j as %s", (bytes, name) => expect(keysOf(bytes)).toEqual([press(name)]));

  test("keeps text and keys in order, and drops unknown sequences", () => {
    expect(keysOf("ab\x1b[99;9Xc\x1b[Zd\r")).toEqual([text("ab"), text("c"), text("d"), press("enter")]);
  });

  test("treats pasted bytes as text, even control characters", () => {
    expect(keysOf("x\x1b[200~one\r\ntwo\x03\x1b[A\ttab\x1b[201~\r")).toEqual([
      text("x"),
      { kind: "paste", text: "one\ntwo[A\ttab" },
      press("enter"),
    ]);
  });

  test("waits after an escape for the rest of its sequence", () => {
    const decoder = createKeyDecoder();
    expect([decoder.push(Buffer.from("\x1b")), decoder.pending()]).toEqual([[], true]);
    expect(decoder.push(Buffer.from("[A"))).toEqual([press("up")]);
    expect(decoder.pending()).toBe(false);
  });

  test("decodes the same keys no matter how the bytes are split", () => {
    const piece = fc.constantFrom(
      "a",
      "é",
      "日",
      "👩‍👩‍👧",
      "\r",
      "\t",
      "\x1b[A",
      "\x1b[1;5D",
      "\x1b\r",
      "\x1b[200~p\nq\x1b[201~",
      "\x03",
      "\x1bOH",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.array(fc.nat(200), { maxLength: 20 }), (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(""));
        const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
        const decoder = createKeyDecoder();
        const cut = places.slice(1).flatMap((end, index) => decoder.push(bytes.subarray(places[index], end)));
        expect(joined([...cut, ...decoder.flush()])).toEqual(joined(keysOf(pieces.join(""))));
      }),
    );
  });

  test("emits no text with control characters", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const decoder = createKeyDecoder();
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
        for (const key of decoder.push(bytes)) if (key.kind === "text") expect(key.text).not.toMatch(/[\x00-\x1f\x7f]/);
      }),
    );
  });
});

/** Merges adjacent text keys, because how text is split into pieces does not matter. */
function joined(keys: readonly Key[]): Key[] {
  const all: Key[] = [];
  for (const key of keys) {
    const last = all.at(-1);
    if (key.kind === "text" && last?.kind === "text") all[all.length - 1] = { kind: "text", text: last.text + key.text };
    else all.push(key);
  }
  return all;
}
