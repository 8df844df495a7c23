import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { useDockerEngine, usePodmanEngine } from "../../../test/support/docker-engine.ts";
import type { TestEngine } from "../../../test/support/docker-engine-process.ts";
import { guestPath } from "../../../test/support/docker-harness.ts";
import { describeRuntime } from "../../suites/conformance/describe-runtime.ts";
import { createDockerRuntime } from "./runtime.ts";

/** Adds to the image what the suite's programs need beyond busybox: python to listen on ports. */
async function subject(use: () => Promise<TestEngine>) {
  const engine = await use();
  const stateDir = mkdtempSync(join(tmpdir(), "caisson-test-conformance-"));
  const runtime = createDockerRuntime({ stateDir, guestPath }, { socketPath: engine.socketPath });
  const config = { template: { kind: "image" as const, reference: await engine.image("debian") } };
  return { runtime, spec: config, close: async () => rmSync(stateDir, { recursive: true, force: true }) };
}

describeRuntime("docker", () => subject(useDockerEngine), { required: ["docker"] });
describeRuntime("podman", () => subject(usePodmanEngine));
