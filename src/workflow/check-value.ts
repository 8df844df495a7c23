import { CaissonError } from "../contract/error/error.ts";
import type { ValueSchema } from "../contract/workflow/value-schema.ts";
import type { Json } from "./state.ts";

const PROBLEMS_TOLD = 5;

/** Throws `invalid` with the places where a value does not match a schema. */
export function checkAgainst(schema: ValueSchema, value: Json, what: string): void {
  const problems = problemsWith(schema, value, what);
  if (problems.length === 0) return;
  const more = problems.length > PROBLEMS_TOLD ? `; and ${problems.length - PROBLEMS_TOLD} more` : "";
  throw new CaissonError("invalid", `${problems.slice(0, PROBLEMS_TOLD).join("; ")}${more}`);
}

/** Returns the value with defaults for missing properties. */
export function withDefaults(schema: ValueSchema, value: Json): Json {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const record = value as Record<string, Json>;
  const missing = Object.entries(schema.properties ?? {}).filter(
    ([name, { default: usual }]) => usual !== undefined && !Object.hasOwn(record, name),
  );
  return { ...Object.fromEntries(missing.map(([name, each]) => [name, each.default ?? null])), ...record };
}

function problemsWith(schema: ValueSchema, value: Json, what: string): string[] {
  if (schema.type !== undefined && !hasType(schema.type, value)) return [`${what} must be ${article(schema.type)}`];
  const problems: string[] = [];
  if (schema.enum !== undefined && !isOneOf(schema.enum, value)) {
    problems.push(
      `${what} must be one of ${schema.enum
        .map((each) => JSON.stringify(each))
        .join(", ")
        .slice(0, 300)}`,
    );
  }
  if (typeof value === "number") {
    if (schema.minimum !== undefined && value < schema.minimum) problems.push(`${what} must be at least ${schema.minimum}`);
    if (schema.maximum !== undefined && value > schema.maximum) problems.push(`${what} must be at most ${schema.maximum}`);
  }
  if (typeof value === "string" && schema.maxLength !== undefined && value.length > schema.maxLength) {
    problems.push(`${what} must be at most ${schema.maxLength} characters long`);
  }
  if (Array.isArray(value)) return [...problems, ...problemsWithList(schema, value, what)];
  if (value !== null && typeof value === "object") problems.push(...problemsWithObject(schema, value as Record<string, Json>, what));
  return problems;
}

function isOneOf(allowed: readonly Json[], value: Json): boolean {
  const text = JSON.stringify(value);
  return allowed.some((each) => JSON.stringify(each) === text);
}

function problemsWithList({ items, maxItems }: ValueSchema, value: Json[], what: string): string[] {
  const tooMany = maxItems !== undefined && value.length > maxItems ? [`${what} must have at most ${maxItems} items`] : [];
  return items === undefined ? tooMany : [...tooMany, ...value.flatMap((each, index) => problemsWith(items, each, `${what}[${index}]`))];
}

function problemsWithObject(schema: ValueSchema, value: Record<string, Json>, what: string): string[] {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${what}.${name} is missing`);
  const known = Object.keys(properties);
  const extra = additionalProperties ? [] : Object.keys(value).filter((name) => !Object.hasOwn(properties, name));
  const names = known.join(", ").slice(0, 300);
  return [
    ...missing,
    ...extra.map((name) => `${what} has no ${JSON.stringify(name)} (known: ${names})`),
    ...Object.entries(properties).flatMap(([name, each]) =>
      Object.hasOwn(value, name) ? problemsWith(each, value[name] ?? null, `${what}.${name}`) : [],
    ),
  ];
}

function hasType(type: NonNullable<ValueSchema["type"]>, value: Json): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return value !== null && typeof value === "object" && !Array.isArray(value);
  return typeof value === type;
}

function article(type: string): string {
  return type === "null" ? "null" : /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}
