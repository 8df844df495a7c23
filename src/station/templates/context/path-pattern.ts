import { matchesTokens, matchSequence, type NameToken, nameTokens } from "../../../lib/wildcards.ts";

const PATTERN_CHARACTERS_MAX = 4096;

/** A compiled pattern of paths: one entry for each name, `**` for any number of folders. */
export type PathPattern = readonly ("**" | readonly NameToken[])[];

/**
 * Compiles a pattern as Go's filepath.Match reads it, with `**` in addition: `*` and `?` do not cross a slash, and a
 * leading dot is not special. Returns null if it is malformed or too long.
 */
export function compilePath(pattern: string): PathPattern | null {
  if (pattern.length > PATTERN_CHARACTERS_MAX) return null;
  const names = pattern.split("/").filter((name) => name !== "" && name !== ".");
  const parts: ("**" | readonly NameToken[])[] = [];
  for (const name of names) {
    if (name === "..") return null;
    const tokens = name === "**" ? "**" : nameTokens(name);
    if (tokens === null) return null;
    parts.push(tokens);
  }
  return parts;
}

export const matchesPath = (pattern: PathPattern, path: string) => matchesNames(pattern, namesOf(path));

/** A path's names as characters, to match many patterns against it. */
export const namesOf = (path: string): string[][] => path.split("/").map((name) => [...name]);

export function matchesNames(pattern: PathPattern, names: readonly (readonly string[])[]): boolean {
  return matchSequence(pattern, names, {
    isAny: (part) => part === "**",
    fits: (part, name) => part !== "**" && matchesTokens(part, name),
  });
}

/** Whether a path has wildcards. */
export const hasWildcards = (path: string) => /[*?[\\]/.test(path);
