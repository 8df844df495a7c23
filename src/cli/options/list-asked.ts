import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import { parseDuration } from "./option-values.ts";

/** What lists are asked for by `--owner` and `--since`. */
export function ownedSince(given: ParsedArguments): { owner?: string; createdAfter?: string } {
  const since = given.option("since");
  return defined({
    owner: given.option("owner"),
    createdAfter: since === undefined ? undefined : new Date(Date.now() - parseDuration("since", since)).toISOString(),
  });
}

/** The same, and `--label`. */
export function listFrom(given: ParsedArguments): ReturnType<typeof ownedSince> & { label?: string[] } {
  const label = given.options("label");
  return { ...ownedSince(given), ...(label.length > 0 && { label: [...label] }) };
}
