import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import { parseDuration } from "./option-values.ts";

/** Returns the list filter that --owner and --since define. */
export function ownedSince(args: ParsedArguments): { owner?: string; createdAfter?: string } {
  const since = args.option("since");
  return defined({
    owner: args.option("owner"),
    createdAfter: since === undefined ? undefined : new Date(Date.now() - parseDuration("since", since)).toISOString(),
  });
}

/** Returns the list filter that --owner, --since and --label define. */
export function listFrom(args: ParsedArguments): ReturnType<typeof ownedSince> & { label?: string[] } {
  const label = args.options("label");
  return { ...ownedSince(args), ...(label.length > 0 && { label: [...label] }) };
}
