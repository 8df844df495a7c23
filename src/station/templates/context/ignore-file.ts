import { CaissonError } from "../../../contract/error/error.ts";
import { compilePath, matchesPath, type PathPattern } from "./path-pattern.ts";

const LINES_MAX = 1_000;

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
  const rules = lines.map((line): IgnoreRule => {
    const isException = line.startsWith("!");
    const pattern = compilePath(isException ? line.slice(1).trim() : line);
    if (pattern === null)
      throw new CaissonError("invalid", `${file} has a rule that is not a pattern: ${JSON.stringify(line.slice(0, 200))}`);
    return { pattern, isException };
  });
  return {
    hasExceptions: rules.some(({ isException }) => isException),
    isIgnored(path) {
      const folders = path.split("/").map((_, index, names) => names.slice(0, index + 1).join("/"));
      for (const { pattern, isException } of rules.toReversed())
        if (pattern.length > 0 && folders.some((folder) => matchesPath(pattern, folder))) return !isException;
      return false;
    },
  };
}

export const ignoresNothing: IgnoreRules = { hasExceptions: false, isIgnored: () => false };
