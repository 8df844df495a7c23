import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cpuMs } from "./support/cpu-time.ts";
import { foreignLines } from "./support/growing-cost.ts";
import { literalsIn } from "./tidy/regular-expressions.ts";

const root = join(import.meta.dirname, "..");
const SHORT = 2_000;
const TIMES = 4;
/** Far above the cost of a linear expression for 8,000 characters, and far below that of a quadratic one. */
const SUSPICIOUS_MS = 12;

const repeat = (line: string, characters: number) => line.repeat(Math.ceil(characters / line.length));

function costOf(expression: RegExp, text: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 3; tries += 1) {
    const startMs = cpuMs();
    text.replace(expression, "");
    least = Math.min(least, cpuMs() - startMs);
    if (least < SUSPICIOUS_MS) return least;
  }
  return least;
}

/** Returns a line that costs far more than four times as much at four times the length, or null. */
function slowLine(expression: RegExp): string | null {
  // Words from the expression itself get into its middle, which other lines never reach.
  const words = expression.source.replaceAll(/\\[a-zA-Z]|\(\?[:=!<]+|[\\^$*+?()[\]{}|]/g, " ").split(" ");
  const own = [...new Set(words)].filter((word) => word !== "").slice(0, 6);
  const lines = [...foreignLines, ...own, ...own.map((word) => `${word} `)];
  for (const line of lines) {
    for (const begin of ["", ...own.slice(0, 2)]) {
      for (const end of ["", "\0"]) {
        const text = (characters: number) => `${begin}${repeat(line, characters)}${end}`;
        const long = costOf(expression, text(SHORT * TIMES));
        if (long < SUSPICIOUS_MS) continue;
        if (long / Math.max(costOf(expression, text(SHORT)), 0.5) > TIMES * 2) return `${begin}${line}${end}`;
      }
    }
  }
  return null;
}

test("every regular expression is linear in the length of a line", () => {
  const listed = execFileSync("git", ["ls-files", "-z", "src", "console/src"], { cwd: root, encoding: "utf8" });
  const paths = listed.split("\0").filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$/.test(path));
  const seen = new Map<string, string>();
  for (const path of paths) for (const literal of literalsIn(readFileSync(join(root, path), "utf8"))) seen.set(literal, path);
  expect(seen.size).toBeGreaterThan(300);
  const slow = [...seen].flatMap(([literal, path]) => {
    const expression = expressionOf(literal);
    const line = expression === null ? null : slowLine(expression);
    return line === null ? [] : [`${path}: ${literal} is slow for ${JSON.stringify(line)}`];
  });
  expect(slow).toEqual([]);
});

/** Returns null for the end of a tag or a comment, which only looks like an expression. */
function expressionOf(literal: string): RegExp | null {
  const cut = literal.lastIndexOf("/");
  try {
    return new RegExp(literal.slice(1, cut), literal.slice(cut + 1));
  } catch {
    return null;
  }
}
