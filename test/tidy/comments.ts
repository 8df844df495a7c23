import type { SourceFile, Violation } from "./rules.ts";

const COLUMNS_MAX = 120;

/** Limits the width of comments. The formatter only breaks code that is too long. */
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

/** Returns whether a line is only a comment. ` * ` continues a comment, but in C `*name = …` is code. */
const isComment = (line: string) => /^\s*(\/\/|\/\*|\* )/.test(line);

/** Linters only read their directives on one line. */
const isDirective = (line: string) => /biome-ignore|@ts-expect-error|NOLINT/.test(line);
