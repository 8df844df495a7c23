import { writeFile } from "node:fs/promises";
import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { lines } from "../terminal/line.ts";
import { summaryText, verdictText } from "./attack-view.ts";

/** Attacks the runtime that would be used, or the one that was named. Exit code 1 when a claim does not hold. */
export async function runAttack({ station, stdout }: CliContext, given: ParsedArguments): Promise<number> {
  const json = given.flag("json");
  const file = given.option("report");
  const subject = { of: subjectOf(given), ...defined({ runtime: given.option("runtime"), image: given.option("image") }) };
  let holds = false;
  for await (const told of station.machine.attack(subject)) {
    if ("verdict" in told) {
      if (!json) await stdout.print(lines(verdictText(told.verdict)));
      continue;
    }
    const { signed } = told;
    holds = signed.report.holds;
    if (file !== undefined) await writeReport(file, `${JSON.stringify(signed)}\n`);
    await (json ? stdout.printJson(signed) : stdout.print(lines(summaryText(signed.report))));
  }
  return holds ? 0 : 1;
}

function subjectOf(given: ParsedArguments): "sandboxes" | "station" {
  const [subject = "sandboxes"] = given.positionals;
  if (subject === "sandboxes") return subject;
  const misplaced = ["runtime", "oci-runtime", "image"].find((name) => given.option(name) !== undefined);
  if (subject === "station" && misplaced === undefined) return subject;
  throw new CaissonError(
    "invalid",
    misplaced === undefined ? `${subject} cannot be attacked` : `--${misplaced} is for sandboxes, not for a station`,
    {
      hint: "Use `caisson doctor --attack` for sandboxes, and `caisson doctor --attack station` for a station.",
    },
  );
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
