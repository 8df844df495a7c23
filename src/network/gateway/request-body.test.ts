import { expect, test } from "vitest";
import { parseBody, writeBody } from "./request-body.ts";

const again = (text: string) => JSON.stringify(parseBody(Buffer.from(text)));

test("what is written anew means the same, also numbers that a double cannot hold", () => {
  const text =
    '{"id":12345678901234567890,"pi":3.14159265358979323846,"small":1,"text":"12345678901234567890","deep":{"n":[9007199254740993]}}';
  expect(again(text)).toBe(text);
  expect(again('{"t":"\\ud800 é"}')).toBe('{"t":"\\ud800 é"}');
});

test("a name given twice has one value afterwards; __proto__ is a name like others", () => {
  expect(again('{"model":"a","model":"b"}')).toBe('{"model":"b"}');
  expect(again('{"__proto__":{"model":"a"}}')).toBe('{"__proto__":{"model":"a"}}');
  expect(parseBody(Buffer.from('{"__proto__":{"model":"a"}}')).model).toBeUndefined();
});

test.each(["", "null", "7", '"x"', "[]", "{", '{"a":1}x', "\u{feff}{", "{a:1}"])("%j is refused", (text) => {
  expect(() => parseBody(Buffer.from(text))).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("deeply nested ones are refused at one place or the other, in our words", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  for (const text of [`{"a":${deep}}`, `{"a":${deep},"n":12345678901234567890}`]) {
    expect(() => writeBody(parseBody(Buffer.from(text)))).toThrow(expect.objectContaining({ code: "invalid" }));
  }
});
