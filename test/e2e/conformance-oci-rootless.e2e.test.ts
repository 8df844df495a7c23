import { afterAll, beforeAll, describe, it } from "vitest";
import { isRequired } from "../../src/suites/conformance/describe-runtime.ts";
import { conformanceTests } from "../../src/suites/conformance/suite.ts";
import { type OrdinaryUser, ordinaryUser } from "../support/ordinary-user.ts";
import { requiredRuntimes, runSuite, type SuiteLine } from "../support/run-suite.ts";

for (const ociRuntime of ["runc", "crun"]) {
  const name = `oci-rootless-${ociRuntime}`;
  describe(`conformance of ${name}`, () => {
    let user: OrdinaryUser | null = null;
    let lines: SuiteLine[] = [];

    beforeAll(async () => {
      user = ordinaryUser();
      lines = await runSuite({ suite: "conformance", user, ociRuntime });
    }, 240_000);
    afterAll(() => user?.remove());

    for (const test of conformanceTests) {
      it(test.name, ({ skip }) => {
        const [probe, ...results] = lines;
        if (probe?.usable !== true) {
          const why = probe?.findings?.map(({ text }) => text).join(" ") ?? "it did not start";
          if (isRequired(name, requiredRuntimes)) throw new Error(`the runtime ${name} is required but absent: ${why}`);
          return skip(`${name} is absent: ${why}`);
        }
        const result = results.find((each) => each.test === test.name);
        if (result?.outcome === "skipped") return skip(result.reason ?? "");
        if (result?.outcome !== "passed") throw new Error(result?.error ?? "the suite did not come to this test");
      });
    }
  });
}
