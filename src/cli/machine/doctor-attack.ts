import { writeFile } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { lines } from "../terminal/line.ts";
import { summaryText, verdictText } from "./attack-view.ts";

/** Attacks the default runtime or the one given. Exits with 1 if a claim does not hold. */
export async function runAttack({ station, stdout }: CliContext, args: ParsedArguments): Promise<number> {
  const json = args.flag("json");
  const file = args.option("report");
  const subject = { of: subjectOf(args), ...defined({ runtime: args.option("runtime"), image: args.option("image") }) };
  let holds = false;
  for await (const update of station.machine.attack(subject)) {
    if ("verdict" in update) {
      if (!json) await stdout.print(lines(verdictText(update.verdict)));
      continue;
    }
    const { signed } = update;
    holds = signed.report.holds;
    if (file !== undefined) await writeReport(file, `${JSON.stringify(signed)}\n`);
    await (json ? stdout.printJson(signed) : stdout.print(lines(summaryText(signed.report))));
  }
  return holds ? 0 : 1;
}

function subjectOf(args: ParsedArguments): "sandboxes" | "station" {
  const [subject = "sandboxes"] = args.positionals;
  if (subject === "sandboxes") return subject;
  const misplaced = ["runtime", "oci-runtime", "image"].find((name) => args.option(name) !== undefined);
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
    throw new CaissonError("invalid", `cannot write the report to ${file}`, {
      cause: error,
      hint: "Choose a file in an existing folder.",
    });
  }
}
