import { isTest, type SourceFile, type Violation } from "./rules.ts";

const CLOSURE_LINES_MAX = 100;

/** Functions that are longer, each with its reason. */
export const longClosures: Readonly<Record<string, string>> = {
  "src/cli/runs/run-view.ts": "one line for each kind of event, over what the run showed before",
  "guest/test/files-client.ts": "the other end of a protocol, request by request",
};

/** A long closure is a class in disguise: its state, effects and lifetime belong apart. The formatter's indentation says where a function ends. */
export function shortClosures(files: readonly SourceFile[], reasons = longClosures): Violation[] {
  return files
    .filter(({ path }) => /^(src|bench|test|guest|scripts)\/.*\.ts$/.test(path) && !isTest(path))
    .flatMap((file) => {
      const long = functionsOf(file.text).filter(({ lines }) => lines > CLOSURE_LINES_MAX);
      if (long.length === 0) return file.path in reasons ? [{ path: file.path, what: "needs no reason for a long function any more" }] : [];
      return file.path in reasons
        ? []
        : long.map(({ at, lines }) => ({
            path: file.path,
            what: `the function at line ${at} has ${lines} lines; at most ${CLOSURE_LINES_MAX}`,
          }));
    });
}

/** Where each function with a body of several lines begins, and how long it is. */
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
