import { expect, test } from "vitest";
import { parseBytes, parseCount, parseDuration, parseNumber } from "./option-values.ts";

test("rejects an invalid value, naming the option and a valid example", () => {
  expect(parseBytes("memory", "4g")).toBe(4 * 2 ** 30);
  for (const parse of [parseBytes, parseCount, parseDuration, parseNumber]) {
    expect(() => parse("some-option", "4x")).toThrow(
      expect.objectContaining({
        code: "invalid",
        message: expect.stringContaining("--some-option"),
        hint: expect.stringContaining("such as"),
      }),
    );
  }
});
