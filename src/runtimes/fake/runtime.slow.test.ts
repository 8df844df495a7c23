import { once } from "node:events";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { describeRuntime } from "../../suites/conformance/describe-runtime.ts";
import { conformancePrograms } from "./conformance-programs.ts";
import { createFakeRuntime } from "./runtime.ts";

describeRuntime("fake", async () => ({ runtime: createFakeRuntime({ programs: conformancePrograms }) }));

test("connects from inside to a served port, and either end can break off", async () => {
  await using runtime = createFakeRuntime();
  await using sandbox = await runtime.create(SandboxConfig.parse({}));
  expect(runtime.connectInside(sandbox.id, 19_080)).toBeNull();
  const dial = () => runtime.connectInside(sandbox.id, 19_080) as Duplex;
  const claim = await sandbox.serve(19_080, ({ stream }) => void stream.pipe(stream));
  const echoed = dial();
  const bytes = Buffer.alloc(2_000_000, "echo");
  echoed.end(bytes);
  expect((await buffer(echoed)).equals(bytes)).toBe(true);

  const broken = await sandbox.serve(19_080, ({ stream }) => void stream.once("data", () => stream.destroy()));
  const reset = dial();
  reset.write("x");
  await expect(once(reset, "end")).rejects.toThrow("reset");

  broken.close();
  claim.close();
  await sandbox.ping(); // the guest has received the releases
  const refused = dial();
  expect((await buffer(refused)).toString()).toMatch(/^HTTP\/1\.1 503 /);
});
