import { expect, test } from "vitest";
import { nextNumber, numberOf, refOf } from "./shell-refs.ts";

test("numbers a new shell above all earlier ones", () => {
  expect(numberOf(refOf(3))).toBe(3);
  expect(nextNumber([])).toBe(1);
  expect(nextNumber([refOf(2), refOf(7), "other"])).toBe(8);
});

test("ignores refs that do not belong to console shells", () => {
  for (const ref of ["console-shell-", "console-shell-0", "console-shell-1x", "shell-1", "console-shell-12345678"]) {
    expect(numberOf(ref)).toBe(null);
  }
});
