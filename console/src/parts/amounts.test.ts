import { expect, test } from "vitest";
import { bytes, cost, plural, tokens } from "./amounts.ts";

test("formats amounts briefly", () => {
  expect([0, 999, 12_400, 999_000, 3_100_000].map(tokens)).toEqual(["0", "999", "12.4k", "999k", "3.1M"]);
  expect([null, 0, 0.004, 1.5, 240.4].map(cost)).toEqual(["–", "$0", "<$0.01", "$1.50", "$240"]);
  expect([0, 1023, 1024, 4300, 300 * 1024 ** 2, 1.5 * 1024 ** 3].map(bytes)).toEqual([
    "0 B",
    "1023 B",
    "1 KiB",
    "4.2 KiB",
    "300 MiB",
    "1.5 GiB",
  ]);
  expect([plural(1, "run"), plural(2, "run"), plural(2, "entry", "entries")]).toEqual(["1 run", "2 runs", "2 entries"]);
});
