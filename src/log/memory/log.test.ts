import { describeLog } from "../conformance/describe-log.ts";
import { createMemoryLog } from "./log.ts";

describeLog("memory", async () => {
  // All handles share one store; a second handle may only bring its own clocks.
  let clock: () => number = Date.now;
  let leaseClock = { nowMs: () => performance.now() };
  const log = createMemoryLog({ nowMs: () => clock(), leaseClock: { nowMs: () => leaseClock.nowMs() } });
  return {
    open: async (options) => {
      if (options?.nowMs) clock = options.nowMs;
      if (options?.leaseClock) leaseClock = options.leaseClock;
      return log;
    },
    dispose: async () => undefined,
  };
});
