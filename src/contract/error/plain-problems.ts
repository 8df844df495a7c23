import type { z } from "zod";

/** A problem with a value, in words for users. The validator's own words are for people who know its schemas. */
export interface Problem {
  path: readonly PropertyKey[];
  /** Continues the name of the value ("must be at least 1"), or is a complete phrase. */
  text: string;
  /** An unknown name, and the known ones. */
  unknown?: { key: string; known: readonly string[] };
}

export type Checked<Value> = { success: true; data: Value } | { success: false; problems: readonly Problem[] };

export function checkValue<Schema extends z.ZodType>(schema: Schema, value: unknown): Checked<z.output<Schema>> {
  const parsed = schema.safeParse(value, { error: wordsOf });
  if (parsed.success) return parsed;
  return { success: false, problems: parsed.error.issues.flatMap(unfold).flatMap((issue) => problemsOf(schema, issue)) };
}

const PROBLEMS_TOLD = 5;

/** Joins all problems into one fragment. `nameOf` returns what users call the value at a path. */
export function tellProblems(
  problems: readonly Problem[],
  nameOf: (path: readonly PropertyKey[]) => string = (path) => path.join("."),
): string {
  const fragments = problems.slice(0, PROBLEMS_TOLD).map(({ path, text }) => {
    const name = nameOf(path);
    return name === "" ? text : /^(must|is|has|needs) /.test(text) ? `${name} ${text}` : `${name}: ${text}`;
  });
  return [...fragments, ...(problems.length > PROBLEMS_TOLD ? [`and ${problems.length - PROBLEMS_TOLD} more`] : [])].join("; ");
}

function problemsOf(schema: z.ZodType, issue: z.core.$ZodIssue): Problem[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path, text: issue.message }];
  const known = keysAt(schema, issue.path).filter((key) => !key.startsWith("$"));
  return issue.keys.map((key) => ({
    path: issue.path,
    text: `has no setting ${JSON.stringify(key)}${known.length === 0 ? "" : ` (known: ${known.join(", ")})`}`,
    unknown: { key, known },
  }));
}

/** For a value with several possible forms, returns the problems with the intended form. */
function unfold(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const intendedIssues = issue.errors.find(
    (branch) => branch.length > 0 && branch.every((each) => each.path.length > 0 || each.code === "unrecognized_keys"),
  );
  return intendedIssues
    ? intendedIssues.flatMap((each) => unfold({ ...each, path: [...issue.path, ...each.path] } as z.core.$ZodIssue))
    : [issue];
}

const MIB = 1024 * 1024;
const kinds: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

/** Describes an issue if the schema has no message for it. */
function wordsOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "too_small":
      return describeBound(issue, { limit: issue.minimum, word: issue.inclusive === false ? "more than" : "at least" });
    case "too_big":
      return describeBound(issue, { limit: issue.maximum, word: issue.inclusive === false ? "less than" : "at most" });
    case "invalid_value":
      return issue.values.length === 1 ? `must be ${String(issue.values[0])}` : `must be one of ${issue.values.map(String).join(", ")}`;
    case "invalid_format":
      if (issue.format === "url") return "must be an address such as https://example.org";
      return issue.format === "starts_with" ? `must begin with ${JSON.stringify(issue.prefix)}` : "has the wrong format";
    case "invalid_key":
      return "is not a valid name here";
    case "invalid_union":
      return "has none of the allowed forms";
    default:
      return "is invalid";
  }
}

function describeBound(
  issue: { origin: string; path?: readonly PropertyKey[] | undefined },
  { limit, word }: { limit: number | bigint; word: string },
): string {
  if (issue.origin === "string") return limit === 1 ? "must not be empty" : `must be ${word} ${limit} characters long`;
  if (issue.origin === "array" || issue.origin === "set") return `must have ${word} ${limit} ${limit === 1 ? "entry" : "entries"}`;
  const isBytes = String(issue.path?.at(-1) ?? "").endsWith("Bytes") && Number(limit) >= MIB;
  return `must be ${word} ${isBytes ? `${Number(limit) / MIB} MiB` : limit}`;
}

/** Returns the names that a mapping at this path may have. */
export function keysAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  const definition = (schema as { def?: SchemaDefinition } | undefined)?.def;
  if (!definition) return [];
  if (definition.getter) return keysAt(definition.getter(), path);
  if (definition.innerType) return keysAt(definition.innerType, path);
  if (definition.options) return [...new Set(definition.options.flatMap((option) => keysAt(option, path)))];
  const [first, ...rest] = path;
  if (definition.element) return first === undefined ? [] : keysAt(definition.element, rest);
  if (definition.valueType) return first === undefined ? [] : keysAt(definition.valueType, rest);
  if (!definition.shape) return [];
  return first === undefined ? Object.keys(definition.shape) : keysAt(definition.shape[String(first)], rest);
}

interface SchemaDefinition {
  getter?: () => unknown;
  innerType?: unknown;
  options?: unknown[];
  element?: unknown;
  valueType?: unknown;
  shape?: Record<string, unknown>;
}
