import { expect, test } from "vitest";
import { cutMiddle } from "./limits.ts";

test("cuts a text in the middle, but never within a character", () => {
  const { text, cut } = cutMiddle(`${"a".repeat(9)}${"🙂".repeat(50)}`, { charactersMax: 20, wholeAt: "/tmp/x" });
  expect(cut).toBe(true);
  expect(text.isWellFormed()).toBe(true);
  expect(text).toContain("the full output is in /tmp/x");
  expect(cutMiddle("short", { charactersMax: 20 })).toEqual({ text: "short", cut: false });
});
