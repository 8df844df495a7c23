import type { Rule, SourceFile } from "./rules.ts";

/** Files that build regular expressions from text, and why none of that text is foreign. */
const exemptions: Readonly<Record<string, string>> = {
  "console/src/parts/ansi-spans.ts": "two constants, written in parts",
  "src/agent/tools/html-text.ts": "a text with every character escaped, so that it has one way to match",
  "src/agent/tools/mcp.ts": "the id of a run, which is letters and digits",
  "src/api/observe/testing-observe.ts": "constants of a test",
  "src/api/streams/upgrades.ts": "the paths of our own table of routes",
  "src/contract/api/streams.ts": "the prefixes of ids",
  "src/contract/network/network.ts": "a constant for labels of names",
  "src/contract/run/run.ts": "the prefixes of ids",
  "src/network/address/target-host.ts": "a constant for labels of names",
  "src/network/gateway/request-grammar.ts": "constants of providers' paths",
  "src/network/mirror/digest-list.ts": "the length of a digest",
  "src/network/preview/preview-rewrite.ts": "a token that we made, letters and digits",
  "src/runtimes/oci/template/system-packages.ts": "two names of fields",
  "src/station/durable/durable-verbs.ts": "the prefix of ids",
  "src/station/names/one-of.ts": "the prefix of ids",
  "src/station/runs/rules.ts": "two names of fields",
  "src/station/specs/evaluate.ts": "the prefix of requirements",
  "src/workspace/apply-record.ts": "a constant prefix",
};

const isOurs = ({ path }: SourceFile) => /^(?:src|console\/src)\//.test(path) && !/\.test\.tsx?$/.test(path);

/** A regular expression from a foreign pattern may never end. For wildcards, see `src/lib/wildcards.ts`. */
export const regularExpressionsAreWritten: Rule = (files) =>
  files
    .filter((file) => isOurs(file) && exemptions[file.path] === undefined && /\bnew RegExp\(|[^.\w]RegExp\(/.test(file.text))
    .map(({ path }) => ({ path, what: "makes a regular expression from text; name it in test/tidy/regular-expressions.ts with a reason" }));

/** Forms that backtrack in quadratic time of a line's length, or worse. */
const slow: readonly { what: string; form: RegExp }[] = [
  { what: "repeats a repetition", form: /\((?:\?:)?(?:\[[^\]]*\]|\\?[^()|[\]])[+*]\)[+*]/ },
  {
    what: "looks for the end of a run from each of its characters: trim by a loop, or trimEnd",
    form: /^\/(?!\^)(?:\\s| |\\n|\\t|\[ \\t\])[+*]\$\//,
  },
  { what: "has two runs of anything in a row", form: /\.[*+]\??\.[*+]/ },
];

/** Rejects known forms that are quadratic on long runs of one character. */
export const regularExpressionsAreLinear: Rule = (files) =>
  files
    .filter(isOurs)
    .flatMap(({ path, text }) =>
      literalsIn(text).flatMap((literal) =>
        slow.filter(({ form }) => form.test(literal)).map(({ what }) => ({ path, what: `${literal.slice(0, 60)} ${what}` })),
      ),
    );

/** Returns the regular expressions in a source: literals where a value can follow. */
export function literalsIn(text: string): string[] {
  return [...text.matchAll(/[(,=:[!&|?{};\n] *(\/(?![/*])(?:\[(?:\\.|[^\]\\\n])*\]|\\.|[^/\\[\n])+\/[dgimsuvy]*)/g)].map(
    ([, literal = ""]) => literal,
  );
}
