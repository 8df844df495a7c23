import { expect, test } from "vitest";
import { createScreens } from "./screens.ts";

test("variable parts get placeholders, the same id the same one, and columns align", () => {
  const { steady } = createScreens({ "/tmp/x-aB3": "~" });
  const screen = (run: string, age: string) =>
    `$ caisson ps\nRUN               AGE${" ".repeat(Math.max(age.length, 3) - 3)}  FOLDER\n${run}  ${age}  /tmp/x-aB3/shop\n\n1,234 tokens\n`;
  const first = steady(screen("run_abcdefghijk2", "98 ms"));
  expect(first).toBe("$ caisson ps\nRUN               AGE    FOLDER\nrun_a7k2mq4wz5xt  0.1 s  ~/shop\n\n2,000 tokens\n");
  expect(createScreens({ "/tmp/x-aB3": "~" }).steady(screen("run_zzzzzzzzzzz7", "10.2 min"))).toBe(first);
  expect(steady("run_zzzzzzzzzzz7 then run_abcdefghijk2, 3f2a1bc")).toBe("run_b7k2mq4wz5xt then run_a7k2mq4wz5xt, c0ffee0");
});
