import { CaissonError } from "../../../contract/error/error.ts";
import { compilePath, matchesNames, namesOf, type PathPattern } from "./path-pattern.ts";

const LINES_MAX = 1_000;
/** Characters of all rules together. Their product with a path's length bounds the time that one path takes. */
const CHARACTERS_MAX = 65_536;
/** How many folders' decisions are remembered. */
const FOLDERS_MAX = 10_000;

interface IgnoreRule {
  pattern: PathPattern;
  /** Whether it brings back what an earlier rule ignores. */
  isException: boolean;
}

/** Which paths of a context COPY and ADD do not see. */
export interface IgnoreRules {
  isIgnored(path: string): boolean;
  /** Whether something below an ignored folder may come back. */
  readonly hasExceptions: boolean;
}

/** Reads a .dockerignore. The last rule that matches a path, or a folder above it, decides. Throws `invalid`. */
export function parseIgnoreFile(text: string, file: string): IgnoreRules {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.length > LINES_MAX) throw new CaissonError("too_large", `${file} has more than ${LINES_MAX} rules`);
  if (lines.reduce((sum, line) => sum + line.length, 0) > CHARACTERS_MAX)
    throw new CaissonError("too_large", `the rules of ${file} have more than ${CHARACTERS_MAX} characters`);
  const rules = lines.map((line): IgnoreRule => {
    const isException = line.startsWith("!");
    const pattern = compilePath(isException ? line.slice(1).trim() : line);
    if (pattern === null)
      throw new CaissonError("invalid", `${file} has a rule that is not a pattern: ${JSON.stringify(line.slice(0, 200))}`);
    return { pattern, isException };
  });
  const lastRule = lastRuleOf(rules);
  return {
    hasExceptions: rules.some(({ isException }) => isException),
    isIgnored: (path) => rules[lastRule(path)]?.isException === false,
  };
}

/** Returns a function that finds the last rule for a path or a folder above it; -1 if no rule matches. */
function lastRuleOf(rules: readonly IgnoreRule[]): (path: string) => number {
  const folders = new Map<string, number>();
  const ofFolder = (path: string): number => {
    const known = folders.get(path);
    if (known !== undefined) return known;
    const found = last(path);
    if (folders.size >= FOLDERS_MAX) folders.clear();
    folders.set(path, found);
    return found;
  };
  const last = (path: string): number => {
    const slash = path.lastIndexOf("/");
    const above = slash < 0 ? -1 : ofFolder(path.slice(0, slash));
    const names = namesOf(path);
    for (let index = rules.length - 1; index > above; index -= 1) {
      const { pattern } = rules[index] as IgnoreRule;
      if (pattern.length > 0 && matchesNames(pattern, names)) return index;
    }
    return above;
  };
  return last;
}

export const ignoresNothing: IgnoreRules = { hasExceptions: false, isIgnored: () => false };
