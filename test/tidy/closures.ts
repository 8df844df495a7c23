import { isTest, type SourceFile, type Violation } from "./rules.ts";

const CLOSURE_LINES_MAX = 100;

/** Longer functions, each with a reason. */
export const longClosures: Readonly<Record<string, string>> = {
  "guest/test/files-client.ts": "the other end of a protocol, request by request",
};

/**
 * Rejects long closures. A long closure is a class in disguise: its state, effects and lifetime belong in separate
 * places. The formatter's indentation marks the end of a function.
 */
export function shortClosures(files: readonly SourceFile[], reasons = longClosures): Violation[] {
  return files
    .filter(({ path }) => /^(src|bench|test|guest|scripts)\/.*\.ts$/.test(path) && !isTest(path))
    .flatMap((file) => {
      const long = functionsOf(file.text).filter(({ lines }) => lines > CLOSURE_LINES_MAX);
      if (long.length === 0) return file.path in reasons ? [{ path: file.path, what: "no longer needs a reason for a long function" }] : [];
      return file.path in reasons
        ? []
        : long.map(({ at, lines }) => ({
            path: file.path,
            what: `the function at line ${at} has ${lines} lines; at most ${CLOSURE_LINES_MAX}`,
          }));
    });
}

/** Returns the start and length of each function with a body of several lines. */
function functionsOf(text: string): { at: number; lines: number }[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const indentation = /^ */.exec(line)?.[0] ?? "";
    if (!/(=>|\)(: [^=]*)?) \{$/.test(line) || /^ *(\} )?(if|else|for|while|switch|catch)\b/.test(line)) return [];
    const end = lines.findIndex(
      (other, at) => at > index && other.startsWith(indentation) && /^[\])}]/.test(other.slice(indentation.length)),
    );
    return end === -1 ? [] : [{ at: index + 1, lines: end - index + 1 }];
  });
}
