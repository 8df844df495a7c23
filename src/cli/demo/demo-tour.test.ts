import { expect, test } from "vitest";
import { quietly, tour } from "./demo-tour.ts";

test("the demo's claims about anything but time hold on a slow processor", async () => {
  const sandbox = { info: { limits: { memoryBytes: 1 } } } as never;
  const folder = { secret: "/secret", workspace: "/workspace", unchanged: async () => true };
  const waits: number[] = [];
  const runCommand = async (_sandbox: unknown, { timeoutMs }: { timeoutMs: number }) => {
    waits.push(timeoutMs);
    return { ended: { kind: "exited", exitCode: 0 }, stdout: "", stderr: "" };
  };
  const run = quietly({ runCommand } as never, sandbox);
  const stops = tour({ sandbox, run, folder: folder as never, home: "/home/user" });
  for (const { argv, timeoutMs } of stops) await run(argv, timeoutMs);
  const [deliberate, ...others] = waits.sort((left, right) => left - right);
  expect(deliberate).toBe(300);
  expect(Math.min(...others)).toBeGreaterThanOrEqual(120_000);
});
