import type { z } from "zod";

/** What is wrong with a value, in words for people. The validator's own are for those who know its schemas. */
export interface Problem {
  path: readonly PropertyKey[];
  /** Continues the name of what it is about ("must be at least 1"), or is a phrase of its own. */
  text: string;
  /** For a name that nothing has here: the name, and those that there are. */
  unknown?: { key: string; known: readonly string[] };
}

export type Checked<Value> = { success: true; data: Value } | { success: false; problems: readonly Problem[] };

export function checkValue<Schema extends z.ZodType>(schema: Schema, value: unknown): Checked<z.output<Schema>> {
  const parsed = schema.safeParse(value, { error: wordsOf });
  if (parsed.success) return parsed;
  return { success: false, problems: parsed.error.issues.flatMap(unfold).flatMap((issue) => problemsOf(schema, issue)) };
}

const PROBLEMS_TOLD = 5;

/** One fragment for all of them. `nameOf` says what people call the thing at a path. */
export function tellProblems(
  problems: readonly Problem[],
  nameOf: (path: readonly PropertyKey[]) => string = (path) => path.join("."),
): string {
  const told = problems.slice(0, PROBLEMS_TOLD).map(({ path, text }) => {
    const name = nameOf(path);
    return name === "" ? text : /^(must|is|has|needs) /.test(text) ? `${name} ${text}` : `${name}: ${text}`;
  });
  return [...told, ...(problems.length > PROBLEMS_TOLD ? [`and ${problems.length - PROBLEMS_TOLD} more`] : [])].join("; ");
}

function problemsOf(schema: z.ZodType, issue: z.core.$ZodIssue): Problem[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path, text: issue.message }];
  const known = keysAt(schema, issue.path).filter((key) => !key.startsWith("$"));
  return issue.keys.map((key) => ({
    path: issue.path,
    text: `has no setting ${JSON.stringify(key)}${known.length === 0 ? "" : ` (there are ${known.join(", ")})`}`,
    unknown: { key, known },
  }));
}

/** Of a value that may have several forms, the problems with the form that it was meant to have. */
function unfold(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.find(
    (branch) => branch.length > 0 && branch.every((each) => each.path.length > 0 || each.code === "unrecognized_keys"),
  );
  return meant ? meant.flatMap((each) => unfold({ ...each, path: [...issue.path, ...each.path] } as z.core.$ZodIssue)) : [issue];
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

/** Used where a schema says nothing of its own. */
function wordsOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "too_small":
      return bound(issue, { limit: issue.minimum, word: issue.inclusive === false ? "more than" : "at least" });
    case "too_big":
      return bound(issue, { limit: issue.maximum, word: issue.inclusive === false ? "less than" : "at most" });
    case "invalid_value":
      return issue.values.length === 1 ? `must be ${String(issue.values[0])}` : `must be one of ${issue.values.map(String).join(", ")}`;
    case "invalid_format":
      if (issue.format === "url") return "must be an address such as https://example.org";
      return issue.format === "starts_with" ? `must begin with ${JSON.stringify(issue.prefix)}` : "is not in the form that is wanted";
    case "invalid_key":
      return "is not a name that is allowed here";
    case "invalid_union":
      return "has none of the forms that it may have";
    default:
      return "is not valid";
  }
}

function bound(
  issue: { origin: string; path?: readonly PropertyKey[] | undefined },
  { limit, word }: { limit: number | bigint; word: string },
): string {
  if (issue.origin === "string") return limit === 1 ? "must not be empty" : `must be ${word} ${limit} characters long`;
  if (issue.origin === "array" || issue.origin === "set") return `must have ${word} ${limit} ${limit === 1 ? "entry" : "entries"}`;
  const isBytes = String(issue.path?.at(-1) ?? "").endsWith("Bytes") && Number(limit) >= MIB;
  return `must be ${word} ${isBytes ? `${Number(limit) / MIB} MiB` : limit}`;
}

/** The names a mapping at this place may have. */
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
