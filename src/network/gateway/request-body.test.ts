import { expect, test } from "vitest";
import { parseBody, writeBody } from "./request-body.ts";

const again = (text: string) => JSON.stringify(parseBody(Buffer.from(text)));

test("keeps the meaning of rewritten JSON, even for numbers beyond a double", () => {
  const text =
    '{"id":12345678901234567890,"pi":3.14159265358979323846,"small":1,"text":"12345678901234567890","deep":{"n":[9007199254740993]}}';
  expect(again(text)).toBe(text);
  expect(again('{"t":"\\ud800 é"}')).toBe('{"t":"\\ud800 é"}');
});

test("keeps one value of a duplicate key, and treats __proto__ as a normal key", () => {
  expect(again('{"model":"a","model":"b"}')).toBe('{"model":"b"}');
  expect(again('{"__proto__":{"model":"a"}}')).toBe('{"__proto__":{"model":"a"}}');
  expect(parseBody(Buffer.from('{"__proto__":{"model":"a"}}')).model).toBeUndefined();
});

test.each(["", "null", "7", '"x"', "[]", "{", '{"a":1}x', "\u{feff}{", "{a:1}"])("rejects %j", (text) => {
  expect(() => parseBody(Buffer.from(text))).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("rejects deep nesting with an error of ours", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  for (const text of [`{"a":${deep}}`, `{"a":${deep},"n":12345678901234567890}`]) {
    expect(() => writeBody(parseBody(Buffer.from(text)))).toThrow(expect.objectContaining({ code: "invalid" }));
  }
});
