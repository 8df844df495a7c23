import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeRuntime } from "../../suites/conformance/describe-runtime.ts";
import { createHostRuntime } from "./runtime.ts";

const guestPath = join(import.meta.dirname, "../../../guest/build/caisson-guest");

describeRuntime("host", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-host-"));
  return {
    runtime: createHostRuntime({ stateDir, guestPath }),
    close: () => rm(stateDir, { recursive: true, force: true }),
  };
});
