import { type Document, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
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

/** Bigger is no agent's file. */
const FILE_CHARACTERS_MAX = 1_000_000;

/** Reads a `.prompt` file. Throws `invalid` with every complaint and its line. */
export function parseAgentFile(path: string, source: string): AgentFile {
  if (source.length > FILE_CHARACTERS_MAX) throw new CaissonError("too_large", `${path} is longer than an agent's file may be`);
  const match = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(\r?\n|$)/.exec(source);
  if (!match) {
    throw complaints(path, [{ line: 1, text: "the file does not begin with a frontmatter between two lines of ---" }]);
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
  const parsed = Frontmatter.safeParse(plainValue(path, document) ?? {});
  if (!parsed.success) {
    throw complaints(
      path,
      parsed.error.issues.flatMap(unfold).map((issue) => ({ line: lineOf(issue), text: describeIssue(issue) })),
    );
  }
  return { path, frontmatter: parsed.data, template: source.slice(match[0].length), source };

  function lineOf(issue: z.core.$ZodIssue): number {
    const keys = issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] ?? ""] : issue.path;
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

/** The parser counts lines from the frontmatter's first; the place is told by us. */
function withoutPlace(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/ at line \d+, column \d+:?$/, "");
}

/** Anchors that would unfold into gigabytes are refused by the parser, with an error of its own. */
function plainValue(path: string, document: Document): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw complaints(path, [{ line: 2, text: error instanceof Error ? error.message : String(error) }]);
  }
}

/** Of a value that may have several forms, the complaints about the form it was meant to have. */
function unfold(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.find((branch) => branch.every((each) => each.path.length > 0 || each.code === "unrecognized_keys"));
  return meant ? meant.flatMap((each) => unfold({ ...each, path: [...issue.path, ...each.path] } as z.core.$ZodIssue)) : [issue];
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const where = issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  if (issue.code === "unrecognized_keys") return `${where}${issue.keys.map((key) => unknownKey(key, issue.path)).join("; ")}`;
  if (issue.code === "invalid_union") return `${where}is none of the forms it may have`;
  return `${where}${issue.message}`;
}

function unknownKey(key: string, path: readonly PropertyKey[]): string {
  const meant = nearest(key, keysAt(Frontmatter, path));
  return `there is no setting ${JSON.stringify(key)}${meant === null ? "" : `; did you mean ${JSON.stringify(meant)}?`}`;
}

/** The names a mapping at this place may have. */
function keysAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  const definition = (schema as { def?: SchemaDefinition }).def;
  if (!definition) return [];
  if (definition.innerType) return keysAt(definition.innerType, path);
  if (definition.options) return definition.options.flatMap((option) => keysAt(option, path));
  const [first, ...rest] = path;
  if (definition.element) return first === undefined ? [] : keysAt(definition.element, rest);
  if (definition.valueType) return first === undefined ? [] : keysAt(definition.valueType, rest);
  if (!definition.shape) return [];
  return first === undefined ? Object.keys(definition.shape) : keysAt(definition.shape[String(first)], rest);
}

interface SchemaDefinition {
  innerType?: unknown;
  options?: unknown[];
  element?: unknown;
  valueType?: unknown;
  shape?: Record<string, unknown>;
}

function complaints(path: string, unsorted: readonly Complaint[]): CaissonError {
  const list = [...unsorted].sort((a, b) => a.line - b.line);
  const text = list.map((each) => `${path}:${each.line}: ${each.text}`).join("\n");
  return new CaissonError("invalid", `the agent's file cannot be used:\n${text}`, {
    hint: "docs/guides/agents.md lists what may stand there.",
    details: { complaints: list },
  });
}
