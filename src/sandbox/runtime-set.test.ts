import { expect, test } from "vitest";
import type { Probe, Runtime, RuntimeContext } from "./runtime.ts";
import { createRuntimeSet } from "./runtime-set.ts";

const context: RuntimeContext = { stateDir: "/nonexistent", guestPath: "/nonexistent" };
const usable: Probe = { usable: true, startMs: 1, findings: [] };

/** A runtime whose probe ends when the test says so. */
function setWithSlowProbe() {
  const steps: string[] = [];
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const { promise, resolve: finishProbe } = Promise.withResolvers<Probe>();
  const runtime: Pick<Runtime, "name" | "probe" | typeof Symbol.asyncDispose> = {
    name: "oci",
    async probe() {
      start();
      const probe = await promise;
      steps.push("probed");
      return probe;
    },
    async [Symbol.asyncDispose]() {
      steps.push("disposed");
    },
  };
  const runtimes = createRuntimeSet({
    context,
    factories: { oci: async () => runtime as Runtime, docker: async () => runtime as Runtime },
  });
  return { runtimes, steps, started, finishProbe: () => finishProbe(usable) };
}

test("disposal waits for a running probe, whose sandbox would otherwise remain", async () => {
  const { runtimes, steps, started, finishProbe } = setWithSlowProbe();
  const probe = runtimes.probe("oci");
  await started;
  const disposal = runtimes[Symbol.asyncDispose]();
  finishProbe();
  await disposal;
  expect(steps).toEqual(["probed", "disposed"]);
  expect(await probe).toEqual(usable);
});

test("starts no runtime and no probe after disposal", async () => {
  const { runtimes, steps } = setWithSlowProbe();
  await runtimes.get("oci");
  await runtimes[Symbol.asyncDispose]();
  await expect(runtimes.get("docker")).rejects.toMatchObject({ code: "unavailable" });
  await expect(runtimes.probe("oci")).rejects.toMatchObject({ code: "unavailable" });
  expect(steps).toEqual(["disposed"]);
});
