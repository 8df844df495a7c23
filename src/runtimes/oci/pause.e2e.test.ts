import { afterAll, beforeAll, expect, test } from "vitest";
import { ociSubject } from "../../../test/support/oci-subject.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Subject } from "../../suites/conformance/describe-runtime.ts";

const TIMES = 100;

let subject: Subject = { absent: "not made yet" };
beforeAll(async () => {
  subject = await ociSubject("runc");
});
afterAll(async () => {
  if ("absent" in subject) return;
  await subject.runtime[Symbol.asyncDispose]();
  await subject.close?.();
});

test("pauses a sandbox every time, even while processes constantly start and end", { timeout: 120_000 }, async ({ skip }) => {
  if ("absent" in subject) return skip(subject.absent);
  const { runtime } = subject;
  if (!(await runtime.capabilities()).pause) return skip("nothing can be frozen here");
  await using sandbox = await runtime.create(SandboxConfig.parse({}));
  for (let count = 0; count < 3; count++) await sandbox.spawn({ argv: ["sh", "-c", "while :; do /bin/true; done"] });
  for (let count = 0; count < TIMES; count++) {
    await sandbox.pause();
    await sandbox.resume();
  }
  expect(sandbox.info.state).toBe("running");
});
