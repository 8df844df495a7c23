import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { type FieldText, fieldOptions, limitFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";

/** The option behind each part of a request, by the end of its path. `*` matches any one name. */
const optionOf: Readonly<Record<string, string>> = {
  ...optionsOf(fieldOptions, ""),
  ...optionsOf(limitFieldOptions, "limits."),
  "limits.wallClockMs": "timeout",
  "template.reference": "image",
  "workspace.path": "workspace",
  "labels.*": "label",
  labels: "label",
  "gateway.wires": "gateway",
  "gateway.models": "gateway-models",
  "gateway.models.*": "gateway-models",
  "gateway.costUsdMax": "gateway-cost",
  "gateway.tokensMax": "gateway-tokens",
  "session.id": "session",
  "source.url": "repo",
  "source.path": "repo",
  "source.branch": "branch",
  "source.ref": "ref",
  "source.depth": "depth",
  "source.submodulesFrom": "submodules-from",
  "source.submodulesFrom.*": "submodules-from",
  "settings.runtime": "runtime",
  "settings.timeoutMs": "timeout",
  "settings.maxSteps": "max-steps",
  "budgets.costUsd": "max-cost",
  "budgets.tokens": "max-tokens",
  name: "name",
  suite: "suite",
  "packages.*": "include",
  mirror: "mirror",
  variant: "variant",
  model: "model",
  task: "task",
};

/** Maps each field of a table, and everything below it, to its option. */
function optionsOf(table: Readonly<Record<string, FieldText>>, prefix: string): Record<string, string> {
  const named = Object.entries(table).flatMap(
    ([
      field,
      {
        options: [option],
      },
    ]) => (option === undefined ? [] : [[prefix + field, option.name]]),
  );
  return Object.fromEntries(
    named.flatMap(([path, name]) => [
      [path, name],
      [`${path}.*`, name],
    ]),
  );
}

/** Checks a request built from the options of a command line. Throws `invalid`, naming the options. */
export function checkOptions<Schema extends z.ZodType>(schema: Schema, request: z.input<Schema>): z.output<Schema> {
  const parsed = checkValue(schema, request);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", tellProblems(parsed.problems, nameOf), { hint: "Use --help to see what each option accepts." });
}

function nameOf(path: readonly PropertyKey[]): string {
  for (let start = 0; start < path.length; start++) {
    const rest = path.slice(start).map(String);
    const option = optionOf[rest.join(".")] ?? optionOf[[...rest.slice(0, -1), "*"].join(".")];
    if (option !== undefined) return option === "task" ? "the task" : `--${option}`;
  }
  return path.join(".");
}
