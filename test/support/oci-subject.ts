import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOciRuntime } from "../../src/runtimes/oci/runtime.ts";
import type { Subject } from "../../src/suites/conformance/describe-runtime.ts";

const guestPath = join(import.meta.dirname, "../../guest/build/caisson-guest");

/**
 * Returns the oci runtime with this OCI runtime, for the user who runs the tests. It is absent if a sandbox does not
 * start with it.
 */
export async function ociSubject(ociRuntime: string): Promise<Subject> {
  const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const close = () => rm(stateDir, { recursive: true, force: true });
  const runtime = createOciRuntime({ stateDir, guestPath }, { home: process.env.HOME ?? "/", path: process.env.PATH ?? "", ociRuntime });
  const probe = await runtime.probe();
  if (probe.usable) return { runtime, close };
  await runtime[Symbol.asyncDispose]();
  await close();
  return { absent: probe.findings.map(({ text }) => text).join(" ") };
}
