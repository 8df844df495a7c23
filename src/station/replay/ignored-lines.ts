import { CaissonError } from "../../contract/error/error.ts";
import { compilePattern, type LinearPattern } from "../../workflow/expressions/linear-pattern.ts";

/** Steps that all patterns together may take for one text: about a second. */
const STEPS_MAX = 50_000_000;

/**
 * Returns a function that splits a text into lines and replaces every line that matches a pattern with the pattern, so
 * that two such lines are equal. Throws `invalid` for a malformed pattern; the function throws `too_large` if the
 * patterns take too long.
 */
export function ignoringLines(patterns: readonly string[]): (text: string) => string[] {
  const compiled = patterns.map(compile);
  return (text) => {
    let left = STEPS_MAX;
    const spend = (steps: number) => {
      left -= steps;
      if (left < 0) {
        throw new CaissonError("too_large", "the patterns to ignore take too long on this result", {
          hint: "Use fewer or simpler patterns.",
        });
      }
    };
    return text.split("\n").map((line) => {
      const at = compiled.findIndex((pattern) => pattern.matches(line, spend));
      return at === -1 ? line : `(ignored: ${patterns[at]})`;
    });
  };
}

function compile(pattern: string): LinearPattern {
  try {
    return compilePattern(pattern);
  } catch (error) {
    throw new CaissonError("invalid", `cannot ignore ${JSON.stringify(pattern)}: ${(error as Error).message}`, {
      hint: "Patterns are regular expressions in RE2's syntax, matched line by line.",
    });
  }
}
