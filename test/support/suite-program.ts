/**
 * Runs the conformance or the attack suite on the oci runtime in a separate process, as the user who started it,
 * because vitest itself runs as another user. Prints one JSON line for each result. Arguments: the suite, the state
 * folder, and the runtime's options as JSON.
 */
import { join } from "node:path";
import { createOciRuntime, type OciOptions } from "../../src/runtimes/oci/runtime.ts";
import { hostClaims } from "../../src/station/machine/host-claims.ts";
import { runAttacks } from "../../src/suites/attack/run-attacks.ts";
import { runConformance } from "../../src/suites/conformance/run-conformance.ts";
import { networkedForTest } from "./network-host.ts";
import { pooledRuntime } from "./pooled-runtime.ts";

const [suite, stateDir = "", optionsText = "{}"] = process.argv.slice(2);
const builds = join(import.meta.dirname, "../../guest/build");
const options = JSON.parse(optionsText) as OciOptions;
const created = createOciRuntime({ stateDir, guestPath: join(builds, "caisson-guest") }, options);
const { runtime, counts } = options.pool === undefined ? { runtime: created, counts: undefined } : pooledRuntime(created);
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
try {
  const probe = await runtime.probe();
  print({ usable: probe.usable, findings: probe.findings });
  if (probe.usable && suite === "conformance") {
    await runConformance(runtime, {
      onResult: (result) =>
        print(result.outcome === "failed" ? { ...result, error: String((result.error as Error)?.stack ?? result.error) } : result),
    });
  } else if (probe.usable) {
    await runAttacks(networkedForTest(runtime, { stateDir }), {
      version: "test",
      stateDir,
      probePath: join(builds, "caisson-probe"),
      more: hostClaims({ guestPath: join(builds, "caisson-guest"), path: process.env.PATH ?? "" }),
      onVerdict: print,
    });
  }
  if (counts !== undefined) print({ counts });
} finally {
  await runtime[Symbol.asyncDispose]();
}
