import { expect, test } from "vitest";
import { ago, duration } from "./time.tsx";

test("formats times briefly", () => {
  expect([0, 42_000, 150_000, 7_200_000, 3 * 86_400_000, 400 * 86_400_000].map(ago)).toEqual([
    "now",
    "42 s ago",
    "2 min ago",
    "2 h ago",
    "3 d ago",
    "1 y ago",
  ]);
  expect([42, 3_140, 59_600, 124_000, 1_800_000, 4_320_000].map(duration)).toEqual([
    "42 ms",
    "3.1 s",
    "60 s",
    "2 min 4 s",
    "30 min",
    "1 h 12 min",
  ]);
});
