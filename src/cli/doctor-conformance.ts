import { type ConformanceResult, runConformance } from "../suites/conformance/run-conformance.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line, lines } from "./line.ts";

const marks = { passed: "✓", failed: "✗", skipped: "·" } as const;

/** Runs the conformance suite on the runtime that would be used, or the one that was named. Exit code 1 when a test fails. */
export async function runConformanceSuite(context: CliContext, given: ParsedArguments): Promise<number> {
  const json = given.flag("json");
  const image = given.option("image") ?? context.config.image;
  const runtime = await context.resolver.resolve(given.option("runtime") ?? context.config.runtime);
  const report = await runConformance(runtime, {
    ...(image === undefined ? {} : { spec: { template: { kind: "image", reference: image } } }),
    onResult: (result) => {
      if (!json) void context.stdout.print(lines(resultText(result)));
    },
  });
  const { passed, failed, skipped } = report;
  const results = report.results.map((result) => (result.outcome === "failed" ? { ...result, error: errorText(result.error) } : result));
  if (json) await context.stdout.printJson({ ...report, results });
  else await context.stdout.print(line`${runtime.name}: ${passed} passed, ${skipped} skipped, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function resultText(result: ConformanceResult): string {
  const line = `${marks[result.outcome]} ${result.test}`;
  if (result.outcome === "skipped") return `${line}\n    skipped: ${result.reason}`;
  if (result.outcome === "failed") return `${line}\n    ${errorText(result.error).replaceAll("\n", "\n    ")}`;
  return line;
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
