import { type Document, LineCounter, parseDocument } from "yaml";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, type Problem, tellProblems } from "../../contract/error/plain-problems.ts";
import { nearest } from "../../lib/nearest.ts";
import { Frontmatter } from "./frontmatter.ts";

export interface AgentFile {
  path: string;
  frontmatter: Frontmatter;
  /** The template below the frontmatter. */
  template: string;
  /** The whole text, as dotprompt reads it. */
  source: string;
}

export interface Complaint {
  line: number;
  text: string;
}

/** Larger files are not agent files. */
const FILE_CHARACTERS_MAX = 1_000_000;

/** Parses a `.prompt` file. Throws `invalid` with every problem and its line. */
export function parseAgentFile(path: string, source: string): AgentFile {
  if (source.length > FILE_CHARACTERS_MAX) throw new CaissonError("too_large", `${path} is too large for an agent file`);
  const match = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(\r?\n|$)/.exec(source);
  if (!match) {
    throw complaints(path, [{ line: 1, text: "the file must begin with frontmatter between two --- lines" }]);
  }
  const lines = new LineCounter();
  const document = parseDocument(match[1] ?? "", { lineCounter: lines });
  // The frontmatter begins on the file's second line.
  const lineAt = (offset: number) => lines.linePos(offset).line + 1;
  if (document.errors.length > 0) {
    throw complaints(
      path,
      document.errors.map((error) => ({ line: lineAt(error.pos[0]), text: withoutPlace(error.message) })),
    );
  }
  const parsed = checkValue(Frontmatter, plainValue(path, document) ?? {});
  if (!parsed.success) {
    throw complaints(
      path,
      parsed.problems.map((problem) => ({ line: lineOf(problem), text: describe(problem) })),
    );
  }
  return { path, frontmatter: parsed.data, template: source.slice(match[0].length), source };

  function lineOf({ path: at, unknown }: Problem): number {
    const keys = unknown === undefined ? at : [...at, unknown.key];
    for (let length = keys.length; length > 0; length--) {
      const parent = document.getIn(keys.slice(0, length - 1), true) as
        | { items?: { key?: { value?: unknown; range?: number[] } }[] }
        | undefined;
      const pair = parent?.items?.find((item) => item?.key?.value === keys[length - 1]);
      const offset = pair?.key?.range?.[0] ?? (document.getIn(keys.slice(0, length), true) as { range?: number[] } | undefined)?.range?.[0];
      if (offset !== undefined) return lineAt(offset);
    }
    return 2;
  }
}

/**
 * Drops the parser's line numbers: they count from the start of the frontmatter, and we report the line of the file.
 */
function withoutPlace(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/ at line \d+, column \d+:?$/, "");
}

/** The parser itself rejects anchors that would expand to gigabytes. */
function plainValue(path: string, document: Document): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw complaints(path, [{ line: 2, text: error instanceof Error ? error.message : String(error) }]);
  }
}

/** Suggests the nearest known name for a misspelled setting. */
function describe({ path, text, unknown }: Problem): string {
  if (unknown === undefined) return tellProblems([{ path, text }]);
  const suggestion = nearest(unknown.key, unknown.known);
  const slip = `there is no setting ${JSON.stringify(unknown.key)}${suggestion === null ? "" : `; did you mean ${JSON.stringify(suggestion)}?`}`;
  return tellProblems([{ path, text: slip }]);
}

function complaints(path: string, unsorted: readonly Complaint[]): CaissonError {
  const list = [...unsorted].sort((a, b) => a.line - b.line);
  const text = list.map((each) => `${path}:${each.line}: ${each.text}`).join("\n");
  return new CaissonError("invalid", `the agent file is invalid:\n${text}`, {
    hint: "docs/guides/agents.md lists the settings.",
    details: { complaints: list },
  });
}
