import { expect, test } from "vitest";
import { refuseBeyondMachine } from "./machine-size.ts";

const GIB = 2 ** 30;
const machine = { cpus: 2, memoryBytes: 24 * GIB };

test("rejects a limit that exceeds the machine, and names the machine's size", () => {
  expect(() => refuseBeyondMachine({ memoryBytes: 100 * 1024 * GIB }, machine)).toThrow(
    "100 TiB of memory is more than this machine has (24.0 GiB)",
  );
  expect(() => refuseBeyondMachine({ cpus: 64 }, machine)).toThrow("64 cpus are more than this machine has (2)");
  expect(() => refuseBeyondMachine({ cpus: 2.5 }, machine)).toThrow(
    expect.objectContaining({ code: "invalid", hint: expect.stringContaining("--cpus") }),
  );
});

test("accepts a limit equal to the machine's", () => {
  refuseBeyondMachine({ memoryBytes: 24 * GIB, cpus: 2, pids: 1_000_000 }, machine);
  refuseBeyondMachine({}, { cpus: 1, memoryBytes: GIB });
});
