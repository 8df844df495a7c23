import type { ConformanceResult } from "../../contract/machine/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line, lines } from "../terminal/line.ts";

const marks = { passed: "✓", failed: "✗", skipped: "·" } as const;

/** Runs the conformance suite on the default runtime or the one given. Exits with 1 if a test fails. */
export async function runConformanceSuite({ station, stdout }: CliContext, args: ParsedArguments): Promise<number> {
  const json = args.flag("json");
  let failures = 1;
  for await (const update of station.machine.conformance(defined({ runtime: args.option("runtime"), image: args.option("image") }))) {
    if ("result" in update) {
      if (!json) await stdout.print(lines(resultText(update.result)));
      continue;
    }
    const { runtime, passed, failed, skipped } = update.report;
    failures = failed;
    await (json ? stdout.printJson(update.report) : stdout.print(line`${runtime}: ${passed} passed, ${skipped} skipped, ${failed} failed`));
  }
  return failures === 0 ? 0 : 1;
}

function resultText(result: ConformanceResult): string {
  const head = `${marks[result.outcome]} ${result.test}`;
  if (result.outcome === "skipped") return `${head}\n    skipped: ${result.reason}`;
  return result.outcome === "failed" ? `${head}\n    ${result.error.replaceAll("\n", "\n    ")}` : head;
}
