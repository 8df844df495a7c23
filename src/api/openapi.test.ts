import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { paths } from "../verbs/verb-facts.ts";
import { openApiDocument } from "./openapi.ts";

const committed = join(import.meta.dirname, "..", "..", "docs", "openapi.json");

test("docs/openapi.json matches the routes; `node scripts/openapi.ts` updates it", () => {
  expect(JSON.parse(readFileSync(committed, "utf8"))).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
});

test("contains every route, and every reference resolves", () => {
  const text = JSON.stringify(openApiDocument());
  const document = JSON.parse(text) as { paths: Record<string, object>; components: { schemas: object; responses: object } };
  for (const [, kind = "", name = ""] of text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)) {
    expect(Object.keys(document.components[kind as "schemas"]), name).toContain(name);
  }
  expect(text.match(/"\$ref":"(?!#\/components\/)[^"]*"/)).toBeNull();
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(calls.sort()).toEqual(Object.values(paths).sort());
});

interface Operation {
  tags: string[];
  responses: Record<string, object>;
}

test("satisfies linters and type generators", () => {
  const document = JSON.parse(JSON.stringify(openApiDocument())) as {
    tags: { name: string; description: string }[];
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, unknown> };
  };
  const tags = new Set(document.tags.map(({ name }) => name));
  expect(document.tags.filter(({ description }) => !description)).toEqual([]);
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, { tags: used, responses }] of Object.entries(methods)) {
      expect(
        used.filter((tag) => !tags.has(tag)),
        `${method} ${path}`,
      ).toEqual([]);
      expect(
        Object.keys(responses).filter((status) => /^4\d\d$/.test(status)),
        `${method} ${path}`,
      ).not.toEqual([]);
    }
  // Tuples are declared by their length, and no schema is an array of itself.
  expect(JSON.stringify(document)).not.toContain('"items":false');
  for (const [name, schema] of Object.entries(document.components.schemas))
    expect(JSON.stringify(schema), name).not.toContain(`"items":{"$ref":"#/components/schemas/${name}"}`);
});
