import type { ConformanceResult } from "../../contract/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line, lines } from "../terminal/line.ts";

const marks = { passed: "✓", failed: "✗", skipped: "·" } as const;

/**
 * Runs the conformance suite on the runtime that would be used, or the one that was named. Exit code 1 when a test
 * fails.
 */
export async function runConformanceSuite({ station, stdout }: CliContext, given: ParsedArguments): Promise<number> {
  const json = given.flag("json");
  let failures = 1;
  for await (const told of station.machine.conformance(defined({ runtime: given.option("runtime"), image: given.option("image") }))) {
    if ("result" in told) {
      if (!json) await stdout.print(lines(resultText(told.result)));
      continue;
    }
    const { runtime, passed, failed, skipped } = told.report;
    failures = failed;
    await (json ? stdout.printJson(told.report) : stdout.print(line`${runtime}: ${passed} passed, ${skipped} skipped, ${failed} failed`));
  }
  return failures === 0 ? 0 : 1;
}

function resultText(result: ConformanceResult): string {
  const head = `${marks[result.outcome]} ${result.test}`;
  if (result.outcome === "skipped") return `${head}\n    skipped: ${result.reason}`;
  return result.outcome === "failed" ? `${head}\n    ${result.error.replaceAll("\n", "\n    ")}` : head;
}
