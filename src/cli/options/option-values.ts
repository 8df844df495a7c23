import { CaissonError } from "../../contract/error/error.ts";
import { bytesFrom, countFrom, durationFrom, numberFrom } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";

/** Parses sizes such as `512m`, `4g`, `1.5GiB` or `1048576`. Throws `invalid`, naming the option. */
export function parseBytes(option: string, text: string): number {
  return bytesFrom(text) ?? refuse(option, text, "a size such as 512m or 4g");
}

/**
 * Parses durations such as `30s`, `5m`, `1.5h` or `250ms`; a bare number means seconds. Throws `invalid`, naming the
 * option.
 */
export function parseDuration(option: string, text: string): number {
  return durationFrom(text) ?? refuse(option, text, "a duration such as 30s or 5m");
}

/** Parses a whole number above 0. Throws `invalid`. */
export function parseCount(option: string, text: string): number {
  return countFrom(text) ?? refuse(option, text, "a whole number such as 100");
}

/** Parses a number above 0. Throws `invalid`. */
export function parseNumber(option: string, text: string): number {
  return numberFrom(text) ?? refuse(option, text, "a number such as 1.5");
}

/** Returns a parser that accepts only these words and throws `invalid` for others. */
export function parseChoice<Word extends string>(...words: readonly Word[]): (option: string, text: string) => Word {
  return (option, text) => words.find((word) => word === text) ?? refuse(option, text, words.join(" or "));
}

/** Parses `--input K=V`, which may be repeated. Throws `invalid`. */
export function inputsFrom(args: ParsedArguments): Record<string, string> {
  const pairs = args.options("input").map((text) => {
    const equals = text.indexOf("=");
    if (equals < 1) throw new CaissonError("invalid", `--input ${JSON.stringify(text)} is not K=V`);
    return [text.slice(0, equals), text.slice(equals + 1)] as const;
  });
  return Object.fromEntries(pairs);
}

function refuse(option: string, text: string, wanted: string): never {
  throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not ${wanted}`, { hint: `Set --${option} to ${wanted}.` });
}

/** Parses a duration, which may also be in days. Throws `invalid`. */
export function parseDays(option: string, text: string): number {
  const days = /^(\d+)d$/.exec(text)?.[1];
  if (days !== undefined) return Number(days) * 24 * 3_600_000;
  if (text === "0") return 0;
  try {
    return parseDuration(option, text);
  } catch (error) {
    throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not a duration such as 7d or 12h`, { cause: error });
  }
}
