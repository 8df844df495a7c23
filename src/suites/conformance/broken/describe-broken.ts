import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ConformanceTest, whyNotApplicable } from "../context.ts";
import type { Subject } from "../describe-runtime.ts";
import { openConformanceRun } from "../run-conformance.ts";
import { conformanceTests } from "../suite.ts";
import { breakRuntime, type Defect } from "./broken-runtime.ts";
import { fileDefects } from "./file-defects.ts";
import { lifeDefects } from "./life-defects.ts";
import { limitDefects } from "./limit-defects.ts";
import { pointDefects } from "./point-defects.ts";
import { processDefects } from "./process-defects.ts";
import { serveDefects } from "./serve-defects.ts";

/** One defect for each conformance test. */
export const defects: Readonly<Record<string, Defect>> = {
  ...processDefects,
  ...fileDefects,
  ...serveDefects,
  ...lifeDefects,
  ...limitDefects,
  ...pointDefects,
};

/** Short, because a test that hangs has detected its defect. */
const PATIENCE_MS = 800;

/**
 * Registers tests that each chosen conformance test fails on a runtime with one defect. `describeRuntime` shows that it
 * passes without the defect.
 */
export function describeBroken(name: string, make: () => Promise<Subject>, only: (test: ConformanceTest) => boolean = () => true): void {
  describe(`the conformance suite on a broken ${name}`, () => {
    let subject: Subject = { absent: "not created yet" };
    beforeAll(async () => {
      subject = await make();
    }, 60_000);
    afterAll(async () => {
      if ("absent" in subject) return;
      await subject.runtime[Symbol.asyncDispose]();
      await subject.close?.();
    }, 60_000);

    for (const test of conformanceTests.filter(only)) {
      const defect = defects[test.name];
      if (defect === undefined) continue;
      it(`${test.name}: fails when ${defect.what}`, { timeout: 60_000 }, async ({ skip }) => {
        if ("absent" in subject) return skip(subject.absent);
        // A runtime that lacks the needed feature would fail for that reason, which proves nothing. If a test needs
        // `!feature`, the broken runtime claims to lack the feature even if it has it.
        const lacking = test.needs?.startsWith("!") ? null : whyNotApplicable(await subject.runtime.capabilities(), test.needs);
        if (lacking !== null) return skip(lacking);
        const { runtime, close } = breakRuntime(subject.runtime, defect);
        try {
          await using run = await openConformanceRun(runtime, { patienceMs: PATIENCE_MS, ...(subject.spec && { spec: subject.spec }) });
          expect((await run.run(test)).outcome).toBe("failed");
        } finally {
          await close();
        }
      });
    }
  });
}
