import { CaissonError } from "../../contract/error/error.ts";
import { FilePattern, type HidingRules } from "../../contract/workspace/workspace-guard.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";

/** Combines the patterns of the configuration and the options. Throws `invalid`. */
export function hidingFrom(context: CliContext, args: ParsedArguments): HidingRules {
  const { hide, show } = context.config.workspace;
  return { hide: [...hide, ...patterns(args, "hide")], show: [...show, ...patterns(args, "show")] };
}

function patterns(args: ParsedArguments, option: "hide" | "show"): readonly string[] {
  const texts = args.options(option);
  for (const text of texts) {
    if (FilePattern.safeParse(text).success) continue;
    throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not a pattern`, {
      hint: "Use a name such as *.pem, or a path in the workspace such as config/prod.env.",
    });
  }
  return texts;
}
