import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import { parseDuration } from "./option-values.ts";

/** What lists are asked for by `--owner`, `--label` and `--since`. */
export function listFrom(given: ParsedArguments): { owner?: string; label?: string[]; createdAfter?: string } {
  const since = given.option("since");
  const label = given.options("label");
  return defined({
    owner: given.option("owner"),
    label: label.length === 0 ? undefined : [...label],
    createdAfter: since === undefined ? undefined : new Date(Date.now() - parseDuration("since", since)).toISOString(),
  });
}
