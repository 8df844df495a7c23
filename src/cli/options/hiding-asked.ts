import { CaissonError } from "../../contract/error.ts";
import { FilePattern, type HidingRules } from "../../contract/workspace-guard.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";

/** The options over the configuration. Throws `invalid`. */
export function hidingFrom(context: CliContext, given: ParsedArguments): HidingRules {
  const { hide, show } = context.config.workspace;
  return { hide: [...hide, ...patterns(given, "hide")], show: [...show, ...patterns(given, "show")] };
}

function patterns(given: ParsedArguments, option: "hide" | "show"): readonly string[] {
  const texts = given.options(option);
  for (const text of texts) {
    if (FilePattern.safeParse(text).success) continue;
    throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not a pattern`, {
      hint: "Write a name such as *.pem, or a path in the workspace such as config/prod.env.",
    });
  }
  return texts;
}
