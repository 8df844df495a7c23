import { isTest, type Rule } from "./rules.ts";

/** The helpers that may drop a failure, and two parsers of the contract, which imports no helper. */
const helpers = ["src/lib/failures.ts", "src/contract/machine/machine-names.ts", "src/contract/station-note.ts"];

/**
 * A handler that ignores the error and returns a constant hides every failure, even a full disk or too many open files.
 * `ifErrno` and `foundOrNull` name the expected failures; `ignore` says why all of them may be dropped.
 */
export const failuresAreNotSwallowed: Rule = (files) =>
  files
    .filter(({ path }) => /^(src|console\/src)\/.*\.tsx?$/.test(path))
    .filter(({ path }) => !isTest(path) && !helpers.includes(path))
    .flatMap(({ path, text }) =>
      handlersIn(text)
        .filter(isSilent)
        .map((body) => ({ path, what: `drops every failure without a reason: catch ${body.replaceAll(/\s+/g, " ").trim()}` })),
    );

/** Returns the bodies of `.catch(() => …)`, `.then(…, () => …)` and `catch { … }`. */
function handlersIn(text: string): string[] {
  const caught = [...text.matchAll(/\.catch\(\s*\(\)(?:: [^=;]+)? =>|\bcatch (?=\{)/g)].map(({ index, 0: { length } }) =>
    bodyAt(text, index + length),
  );
  const second = [...text.matchAll(/\.then\(/g)].map(({ index, 0: { length } }) => {
    const start = index + length;
    const rest = text.slice(start + bodyAt(text, start, ",").length);
    const [handler] = /^,\s*\(\)(?:: [^=;]+)? =>/.exec(rest) ?? [];
    return handler === undefined ? [] : [bodyAt(rest, handler.length)];
  });
  return [...caught, ...second.flat()];
}

/** Returns the code at `start`: a block, or everything before `end` or the first unmatched closing bracket. */
function bodyAt(text: string, start: number, end?: string): string {
  const isBlock = text[start] === "{";
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if ("([{".includes(text[at] as string)) depth++;
    if (")]}".includes(text[at] as string)) depth--;
    if (depth < 0 || (depth === 0 && text[at] === end)) return text.slice(start, at);
    if (depth === 0 && isBlock) return text.slice(start, at + 1);
  }
  return text.slice(start);
}

/** Returns whether a body neither throws, calls a function, nor reports anything. */
function isSilent(body: string): boolean {
  const code = body.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
  return !/\bthrow\b|[\w\])]\(|\w: |\$\{/.test(code);
}
