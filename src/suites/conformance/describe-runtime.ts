import { afterAll, beforeAll, describe, it } from "vitest";
import type { SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type ConformanceResult, type ConformanceRun, openConformanceRun } from "./run-conformance.ts";
import { conformanceTests } from "./suite.ts";

/** A runtime under test, or the reason for its absence. */
export type Subject = { runtime: Runtime; spec?: SandboxConfigInput; close?: () => Promise<void> } | { absent: string };

export interface DescribeOptions {
  /** Tests that this runtime is known to fail. Each must exist and must fail, so the list cannot become stale. */
  except?: readonly { test: string; reason: string }[];
  /**
   * Names of runtimes whose absence is a failure; the caller reads them from `REQUIRE_RUNTIMES`. `oci` includes
   * `oci-runc`.
   */
  required?: readonly string[];
  patienceMs?: number;
}

/** Registers the whole conformance suite in vitest for one runtime. */
export function describeRuntime(name: string, make: () => Promise<Subject>, options: DescribeOptions = {}): void {
  const { except = [], required = [], patienceMs } = options;
  checkExceptions(except);
  describe(`conformance of ${name}`, () => {
    let subject: Subject = { absent: "not created yet" };
    let run: ConformanceRun | null = null;

    beforeAll(async () => {
      subject = await make();
      if ("absent" in subject) return;
      const { runtime, spec } = subject;
      run = await openConformanceRun(runtime, { ...(spec && { spec }), ...(patienceMs && { patienceMs }) });
    }, 120_000);

    afterAll(async () => {
      await run?.[Symbol.asyncDispose]();
      if ("absent" in subject) return;
      await subject.runtime[Symbol.asyncDispose]();
      await subject.close?.();
    }, 60_000);

    for (const test of conformanceTests) {
      it(test.name, { timeout: 120_000 }, async ({ skip }) => {
        if (run === null) {
          const why = "absent" in subject ? subject.absent : "it could not be opened";
          if (isRequired(name, required)) throw new Error(`the runtime ${name} is required but absent: ${why}`);
          return skip(`${name} is absent: ${why}`);
        }
        const judged = judgeResult(
          await run.run(test),
          except.find((each) => each.test === test.name),
        );
        if (judged.kind === "skipped") return skip(judged.reason);
        if (judged.kind === "failed") throw judged.error;
      });
    }
  });
}

/**
 * Applies a listed exception to a result: an excepted test that fails is skipped with its reason, and one that passes
 * is an error.
 */
export function judgeResult(
  result: ConformanceResult,
  exception: { reason: string } | undefined,
): { kind: "passed" } | { kind: "skipped"; reason: string } | { kind: "failed"; error: unknown } {
  if (result.outcome === "skipped") return { kind: "skipped", reason: result.reason };
  if (exception === undefined) return result.outcome === "passed" ? { kind: "passed" } : { kind: "failed", error: result.error };
  if (result.outcome === "failed") return { kind: "skipped", reason: exception.reason };
  return { kind: "failed", error: new Error(`${result.test} passes: remove it from the exceptions`) };
}

/** Whether a runtime is required, by its name or by the name of its kind. */
export function isRequired(name: string, required: readonly string[]): boolean {
  return required.some((each) => name === each || name.startsWith(`${each}-`));
}

function checkExceptions(except: readonly { test: string; reason: string }[]): void {
  for (const { test, reason } of except) {
    if (!conformanceTests.some((each) => each.name === test)) throw new Error(`no conformance test is named ${JSON.stringify(test)}`);
    if (reason.trim() === "") throw new Error(`the exception for ${JSON.stringify(test)} gives no reason`);
  }
}
