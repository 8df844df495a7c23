import type { SourceFile, Violation } from "./rules.ts";

const COLUMNS_MAX = 120;

/** The formatter breaks code that is too long, and leaves comments alone: those are held to a width here. */
export function commentsWrapped(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(({ path }) => /^(src|guest\/src)\/.*\.(ts|c|h)$/.test(path))
    .flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => {
        const isTooLong = line.length > COLUMNS_MAX && isComment(line) && !isDirective(line);
        return isTooLong ? [{ path, what: `the comment at line ${index + 1} is longer than ${COLUMNS_MAX} columns` }] : [];
      }),
    );
}

/** A line that is nothing else. ` * ` goes on a comment; in C, `*name = …` is code. */
const isComment = (line: string) => /^\s*(\/\/|\/\*|\* )/.test(line);

/** Linters read theirs on one line only. */
const isDirective = (line: string) => /biome-ignore|@ts-expect-error|NOLINT/.test(line);
