import { isTest, type Rule } from "./rules.ts";

interface Phrase {
  pattern: RegExp;
  /** A sentence that the pattern must find. */
  bad: string;
  instead: string;
  /** Paths whose subject needs the word. */
  except?: RegExp;
}

/** Phrases that read as translated. Lines are joined before the search. */
export const phrases: readonly Phrase[] = [
  { pattern: /\bwho(?:m|so)?ever\b/i, bad: "Whoever drives it writes the log.", instead: "name the actor" },
  {
    pattern: /(?<!const |-u )(?<![`"'/:=\w-])[Nn]obody(?= [a-z]|[.,;:)?!])/,
    bad: "Nobody reads it.",
    instead: '"no client", "no process", or the passive',
  },
  {
    pattern: /\b(?:is|are|was|were) none\b(?! of\b)/i,
    bad: "Returns null if there is none.",
    instead: 'what is missing: "is not a port", "if no run has it"',
  },
  { pattern: /\b(?:goes|went|going) on\b/i, bad: "The run goes on.", instead: "continues" },
  { pattern: /\bgo on with\b/i, bad: "Go on with a run.", instead: "continue" },
  { pattern: /\banew\b/i, bad: "The file is written anew.", instead: "again" },
  { pattern: /\b(?:has|have) the say\b/i, bad: "The caller has the say.", instead: "decides" },
  { pattern: /\b(?:comes?|came) to (?:its|their) end\b/i, bad: "The work comes to its end.", instead: "finishes" },
  { pattern: /\balso when\b/i, bad: "It works, also when the disk is full.", instead: "even if" },
  { pattern: /\bso many\b/i, bad: "After so many steps it ends.", instead: "this many, or the number" },
  { pattern: /\bis meant\b/i, bad: "The station knows which run is meant.", instead: "name what is looked up" },
  { pattern: /\b(?:is|are|was|were) told\b/i, bad: "The agent is told.", instead: '"learns", "gets", "reports"' },
  { pattern: /\bof (?:its|their|our|one's) own\b/i, bad: "A process of its own.", instead: '"a separate process", "its own …"' },
  { pattern: /\bfor ever\b/i, bad: "It waits for ever.", instead: '"indefinitely", or the bound' },
  { pattern: /\b(?:lies?|lay|stands?|stood) in\b(?! the way)/i, bad: "The file lies in a folder.", instead: "is in" },
  { pattern: /\bany more\b/i, bad: "It does not answer any more.", instead: "no longer" },
  { pattern: /\bshall\b/i, bad: "It shall not hang.", instead: '"must", "should"', except: /\bspecs?\b|start-ship/ },
  { pattern: /\bvouche[sd]? for\b/i, bad: "The caller vouches for it.", instead: "trusts" },
  { pattern: /\bsigns? of life\b/i, bad: "It gives no sign of life.", instead: '"heartbeat", "does not respond"' },
  { pattern: /\bstands? still\b/i, bad: "The disk stands still.", instead: '"is stopped", "stalls", "blocks"' },
  { pattern: /\bput down\b/i, bad: "The call is put down.", instead: "recorded" },
];

/** Sources, scripts and pages. */
const isRead = (path: string) => /\.(?:tsx?|cjs|js|c|h|css|md|sh)$/.test(path) || /^(?:scripts|test\/vm)\/[^.]+$/.test(path);

export const plainPhrases: Rule = (files) =>
  files
    .filter(({ path }) => isRead(path))
    .flatMap(({ path, text }) => {
      // A phrase may continue on the next line of a comment.
      const joined = text.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|#)?[ \t]*/g, " ");
      return phrases.flatMap(({ pattern, instead, except }) => {
        const found = except?.test(path) === true ? null : pattern.exec(joined);
        if (found === null) return [];
        const around = joined.slice(Math.max(0, found.index - 40), found.index + found[0].length + 30).trim();
        return [{ path, what: `"${found[0]}" in "…${around}…": write ${instead}` }];
      });
    });

const TITLE_MAX = 80;

export const titlesAreShort: Rule = (files) =>
  files
    .filter(({ path }) => isTest(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\b(?:test|it|describe)(?:\.\w+(?:\([^\n]*?\))?)?\(\s*(?:"([^"\n]+)"|`([^`]+)`)/g)].flatMap(
        ([, plain, template]) => {
          const title = plain ?? template ?? "";
          return title.length < TITLE_MAX ? [] : [{ path, what: `the title "${title}" has ${title.length} characters; at most 79` }];
        },
      ),
    );
