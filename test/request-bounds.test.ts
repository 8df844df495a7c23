import { expect, test } from "vitest";
import type { z } from "zod";
import type { Route } from "../src/contract/api/route.ts";
import { routes } from "../src/contract/api/routes.ts";

type Schema = z.core.$ZodType;
/** What a definition may hold of other schemas; a schema has some of it. */
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
/** Of a text's format, of its length and of a list's. */
const checksOf = (schema: Schema): { check?: string; pattern?: RegExp }[] => [
  schema._zod.def as object,
  ...(definitionOf(schema).checks ?? []).map((check) => check._zod.def as object),
];

/** A pattern that is anchored at both ends and repeats nothing without a bound. */
const boundsItself = ({ source }: RegExp) =>
  /^\^.*\$$/s.test(source) && !/(?<!\\)[*+]|\{\d+,\}/.test(source.replaceAll(/\[[^\]]*\]/g, "x"));

function isBounded(schema: Schema): boolean {
  return checksOf(schema).some(
    ({ check, pattern }) => check === "max_length" || check === "length_equals" || (pattern !== undefined && boundsItself(pattern)),
  );
}

/** Where a schema takes as many items, keys or characters as a body can hold. */
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
  // The value of a template or a transformation is made by us: what comes in counts.
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

test("every list, record and text of a request has a bound", () => {
  const seen = new Set<Schema>();
  const found = Object.entries(routes as Record<string, Route>).flatMap(([name, { params = {}, query, body }]) => [
    ...Object.entries(params).flatMap(([param, schema]) => unboundedIn(schema, `${name} path.${param}`, seen)),
    ...(query === undefined ? [] : unboundedIn(query, `${name} query`, seen)),
    ...(body === undefined || body === "bytes" ? [] : unboundedIn(body, `${name} body`, seen)),
  ]);
  expect(seen.size).toBeGreaterThan(500);
  expect(found).toEqual([]);
});
