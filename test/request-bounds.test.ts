import { expect, test } from "vitest";
import type { z } from "zod";
import type { Route } from "../src/verbs/route.ts";
import { routes } from "../src/verbs/routes.ts";

type Schema = z.core.$ZodType;
/** The parts of a schema definition that can contain other schemas. Each schema has some of them. */
interface Definition {
  type: string;
  checks?: z.core.$ZodCheck[];
  shape?: Record<string, Schema>;
  catchall?: Schema;
  element?: Schema;
  items?: Schema[];
  rest?: Schema | null;
  options?: Schema[];
  keyType?: Schema;
  valueType?: Schema;
  innerType?: Schema;
  left?: Schema;
  right?: Schema;
  in?: Schema;
  out?: Schema;
  getter?: () => Schema;
}

const definitionOf = (schema: Schema) => schema._zod.def as unknown as Definition;
/** Returns a schema's checks, such as the format and length of a text and the length of a list. */
const checksOf = (schema: Schema): { check?: string; pattern?: RegExp }[] => [
  schema._zod.def as object,
  ...(definitionOf(schema).checks ?? []).map((check) => check._zod.def as object),
];

/** Returns whether a pattern is anchored at both ends and repeats nothing without a bound. */
const boundsItself = ({ source }: RegExp) =>
  /^\^.*\$$/s.test(source) && !/(?<!\\)[*+]|\{\d+,\}/.test(source.replaceAll(/\[[^\]]*\]/g, "x"));

function isBounded(schema: Schema): boolean {
  return checksOf(schema).some(
    ({ check, pattern }) => check === "max_length" || check === "length_equals" || (pattern !== undefined && boundsItself(pattern)),
  );
}

/** Returns the places where a schema accepts as many items, keys or characters as a body can hold. */
function unboundedIn(schema: Schema, path: string, seen: Set<Schema>): string[] {
  if (seen.has(schema)) return [];
  seen.add(schema);
  const def = definitionOf(schema);
  const into = (inner: Schema | null | undefined, name: string) => (inner ? unboundedIn(inner, `${path}${name}`, seen) : []);
  const own = () => {
    if (def.type === "array") return isBounded(schema) ? [] : [`${path}[]`];
    if (def.type === "string") return isBounded(schema) ? [] : [`${path} (text)`];
    if (def.type === "record") return (schema as z.ZodType).meta?.()?.maxProperties === undefined ? [`${path}{}`] : [];
    return [];
  };
  // We produce the output of a template or a transformation, so only the input counts.
  return [
    ...own(),
    ...Object.entries(def.shape ?? {}).flatMap(([name, inner]) => into(inner, `.${name}`)),
    ...into(def.catchall, ".*"),
    ...into(def.element, "[]"),
    ...(def.items ?? []).flatMap((inner, index) => into(inner, `[${index}]`)),
    ...into(def.rest, "[]"),
    ...(def.options ?? []).flatMap((inner) => into(inner, "")),
    ...into(def.keyType, "{key}"),
    ...into(def.valueType, "{}"),
    ...into(def.innerType, ""),
    ...into(def.left, ""),
    ...into(def.right, ""),
    ...into(def.in, ""),
    ...(def.type === "lazy" ? into(def.getter?.(), "") : []),
  ];
}

test("every list, record and text in a request has a limit", () => {
  const seen = new Set<Schema>();
  const found = Object.entries(routes as Record<string, Route>).flatMap(([name, { params = {}, query, body }]) => [
    ...Object.entries(params).flatMap(([param, schema]) => unboundedIn(schema, `${name} path.${param}`, seen)),
    ...(query === undefined ? [] : unboundedIn(query, `${name} query`, seen)),
    ...(body === undefined || body === "bytes" ? [] : unboundedIn(body, `${name} body`, seen)),
  ]);
  expect(seen.size).toBeGreaterThan(500);
  expect(found).toEqual([]);
});
