import { beforeAll, describe, expect, it } from "vitest";
import type { Claim, Verdict } from "../../src/suites/attack/claim.ts";
import { claims } from "../../src/suites/attack/suite.ts";
import { isRequired } from "../../src/suites/conformance/describe-runtime.ts";
import { requiredRuntimes } from "./run-suite.ts";

/**
 * Registers one test for each claim of the attack suite and of `more`. `attack` returns the verdicts, or why nothing
 * was attacked.
 */
export function describeAttack(
  name: string,
  { more, attack }: { more: readonly Claim[]; attack: () => Promise<Verdict[] | { absent: string }> },
): void {
  describe(`attacks on ${name}`, () => {
    let verdicts: Verdict[] | { absent: string } = { absent: "the attack did not start" };
    beforeAll(async () => {
      verdicts = await attack();
    }, 240_000);

    for (const claim of [...claims, ...more]) {
      it(`${claim.id} ${claim.title}`, ({ skip }) => {
        if ("absent" in verdicts) {
          if (isRequired(name, requiredRuntimes)) throw new Error(`the runtime ${name} is required but absent: ${verdicts.absent}`);
          return skip(`${name} is absent: ${verdicts.absent}`);
        }
        const verdict = verdicts.find((each) => each.id === claim.id);
        if (verdict?.verdict === "declared" || verdict?.verdict === "unverifiable") return skip(`${verdict.verdict}: ${verdict.seen}`);
        expect(verdict?.verdict, verdict?.seen).toBe("observed");
      });
    }
  });
}
