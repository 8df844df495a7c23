import { isTest, type Rule } from "./rules.ts";

/** Participles that are unclear as names: they do not say who does what to whom. */
const participles =
  "asked|begun|brought|followed|found|given|gone|heard|kept|listed|made|meant|numbered|placed|said|seen|sent|shown|taken|told".split("|");
/** Those that are clear as values: what a lookup found, what was counted as seen. */
const clearValues = ["found", "listed", "seen", "sent"];
/** Participles that are clear as values, but not as functions: `checked()` may check, return an error, or make an event. */
const functionParticiples = `
  abandoned aborted accepted added admitted announced answered applied audited authenticated bound bounded broken cached
  cancelled changed checked chosen claimed collected coloured concluded damaged decided declared decoded decompressed
  delegated detected done edited escaped exceeded executed extended failed fenced filled finished framed guarded
  happened hashed headed installed interleaved interrupted judged killed labelled layered left malformed mapped masked
  networked normalised pasted paused pooled quoted reached redacted redirected renamed repaired replayed requested
  retried routed scanned searched settled shimmed spent staged streamed styled submitted superseded toned typed
  unauthenticated unescaped unexpected unfinished unified unlimited unquoted unsupported untrusted verified viewed
`
  .trim()
  .split(/\s+/);

const functions = [
  /\bfunction\*? (\w+)\s*[(<]/g,
  /\b(?:const|let) (\w+)(?:: [^=\n]+)? = (?:async )?(?:<[^>\n]*>)?\([^()\n]*\)(?:: [^=\n]+)? =>/g,
];
const values = /\b(?:const|let) (\w+)\b/g;

/** A function is named with a verb, a value with a noun, and a file after its content: `printSpec`, not `told`. */
export const namesAreNoParticiples: Rule = (files) =>
  files
    .filter(({ path }) => /^(src|console\/src)\/.*\.tsx?$/.test(path))
    .flatMap(({ path, text }) => {
      const named = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = ""]) => name);
      const stem = (path.split("/").at(-1) ?? "").replace(/\..*$/, "");
      const names = [
        ...[stem].filter((name) => !isTest(path) && participles.includes(name)).map((name) => `file: ${name}`),
        ...functions
          .flatMap(named)
          .filter((name) => !isTest(path) && [...participles, ...functionParticiples].includes(name))
          .map((name) => `function: ${name}`),
        ...named(values)
          .filter((name) => participles.includes(name) && !clearValues.includes(name))
          .map((name) => `value: ${name}`),
      ];
      return [...new Set(names)].map((name) => ({ path, what: `a bare participle as the name of a ${name}` }));
    });
