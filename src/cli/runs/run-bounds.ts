import type { Budgets } from "../../contract/run/run.ts";
import { defined } from "../../lib/defined.ts";
import type { OptionDefinition, ParsedArguments } from "../command.ts";
import { parseCount, parseDuration, parseNumber } from "../options/option-values.ts";

/** Returns the options that set new limits for an existing run; `what` begins their help. */
export const boundOptions = (what: string): readonly OptionDefinition[] => [
  { name: "max-cost", value: "USD", summary: `${what} cost` },
  { name: "max-tokens", value: "N", summary: `${what} tokens` },
  { name: "max-steps", value: "N", summary: `${what} steps` },
  { name: "timeout", value: "TIME", summary: `${what} working time` },
];

export function boundsFrom(args: ParsedArguments): Budgets {
  const parse = <Value>(option: string, read: (name: string, text: string) => Value): Value | undefined => {
    const text = args.option(option);
    return text === undefined ? undefined : read(option, text);
  };
  return defined({
    costUsd: parse("max-cost", parseNumber),
    tokens: parse("max-tokens", parseCount),
    steps: parse("max-steps", parseCount),
    timeMs: parse("timeout", parseDuration),
  });
}
