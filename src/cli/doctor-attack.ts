import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { summaryText, verdictText } from "../suites/attack/print-report.ts";
import { signReport } from "../suites/attack/report.ts";
import { runAttacks } from "../suites/attack/run-attacks.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { hostClaims } from "./host-claims.ts";
import { lines } from "./line.ts";

/** Attacks the runtime that would be used, or the one that was named. Exit code 1 when a claim does not hold. */
export async function runAttack(context: CliContext, given: ParsedArguments): Promise<number> {
  const json = given.flag("json");
  const image = given.option("image") ?? context.config.image;
  const runtime = await context.resolver.resolve(given.option("runtime") ?? context.config.runtime);
  const report = await runAttacks(runtime, {
    version: context.version,
    stateDir: context.stateDir,
    probePath: join(dirname(context.guestPath), "caisson-probe"),
    more: hostClaims({ guestPath: context.guestPath, path: context.path }),
    ...(image === undefined ? {} : { spec: { template: { kind: "image", reference: image } } }),
    onVerdict: (verdict) => {
      if (!json) void context.stdout.print(lines(verdictText(verdict)));
    },
  });
  const signed = await signReport(report, { stateDir: context.stateDir });
  const file = given.option("report");
  if (file !== undefined) await writeReport(file, `${JSON.stringify(signed)}\n`);
  await (json ? context.stdout.printJson(signed) : context.stdout.print(lines(summaryText(report))));
  return report.holds ? 0 : 1;
}

async function writeReport(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new CaissonError("invalid", `the report cannot be written to ${file}`, {
      cause: error,
      hint: "Give a file in a folder that exists.",
    });
  }
}
