import { expect, onTestFinished, test } from "vitest";
import { endingSignals, watchSignals } from "./signals.ts";

test("`since` sees signals after the given moment, even before the call", async () => {
  const before = new Map(endingSignals.map((name) => [name, process.listeners(name)]));
  onTestFinished(() => {
    for (const [name, listeners] of before)
      for (const listener of process.listeners(name)) if (!listeners.includes(listener)) process.off(name, listener);
  });
  const interruption = watchSignals();
  const askedMs = Date.now();
  process.emit("SIGHUP", "SIGHUP");
  expect(interruption.received()).toBe("SIGHUP");
  expect(await interruption.since(askedMs)).toBe("SIGHUP");
  const later = interruption.since(Date.now() + 1_000);
  process.emit("SIGTERM", "SIGTERM");
  expect(await later).toBe("SIGTERM");
});
