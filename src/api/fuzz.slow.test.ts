import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { tries } from "../../test/support/thorough.ts";
import type { RouteName } from "../verbs/routes.ts";
import { routes } from "../verbs/routes.ts";
import { openApiDocument } from "./openapi.ts";

const CALLS_PER_ROUTE = tries(12, 2);
const ANSWER_MS = 60_000;

const { server, token, ask, post, endedRun, defects, station, insideToken } = useServer();

interface Schema {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  $ref?: string;
}
interface Operation {
  operationId: string;
  parameters?: { name: string; in: "path" | "query" | "header"; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}
const document = openApiDocument() as unknown as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};
// Other tests shut the station down. The rest start many sandboxes or build an image, and take little input.
const left: readonly string[] = ["station.shutdown", "machine.doctor", "machine.attack", "machine.conformance", "images.build"];
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { operationId }]) => !left.includes(operationId))
    .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

/** Values that people and programs send by mistake or on purpose. */
const nasty = fc.constantFrom<unknown>(
  null,
  "",
  "\0",
  "../../../etc/passwd",
  "%2e%2e%2f",
  "__proto__",
  "constructor",
  "💥".repeat(100),
  -1,
  0,
  2 ** 53,
  1e308,
  [],
  {},
  [[[[]]]],
  true,
  { __proto__: null, toString: 1 },
);

/** Generates mostly what the schema requires, sometimes anything. */
function valueFor(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 9, arbitrary: fittingFor(schema, depth) }, { weight: 1, arbitrary: nasty });
}

function fittingFor(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf;
  if (schema.$ref !== undefined) return fittingFor(document.components.schemas[schema.$ref.split("/").at(-1) as string] ?? {}, depth);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (choices !== undefined) return fc.oneof(...choices.map((each) => fittingFor(each, depth)));
  if (depth > 6) return nasty;
  switch (schema.type) {
    case "string":
      return schema.pattern === undefined ? fc.string({ maxLength: 50 }) : matching(schema.pattern);
    case "integer":
    case "number":
      return fc.integer(rangeOf(schema));
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valueFor(schema.items ?? {}, depth + 1), { maxLength: 3 });
    case "object":
      return fc.record(
        Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, each]) => [name, valueFor(each, depth + 1)])),
        { requiredKeys: schema.required ?? [] },
      );
    default:
      return nasty;
  }
}

const patterns = new Map<string, fc.Arbitrary<string>>();

/** Created once for each pattern, since that is slow. */
function matching(pattern: string): fc.Arbitrary<string> {
  const arbitrary = patterns.get(pattern) ?? fc.stringMatching(new RegExp(pattern));
  patterns.set(pattern, arbitrary);
  return arbitrary;
}

function rangeOf({ minimum = -10, maximum = 1000 }: Schema): { min: number; max: number } {
  const min = Math.ceil(Math.max(minimum, -1_000_000));
  return { min, max: Math.max(min, Math.floor(Math.min(maximum, 1_000_000))) };
}

interface Attempt {
  params: Record<string, unknown>;
  query: Record<string, unknown>;
  body: unknown;
  events: boolean;
  lastEventId: string | undefined;
}

function attemptsOn({ parameters = [], requestBody }: Operation, known: Readonly<Record<string, string>>): fc.Arbitrary<Attempt> {
  const of = (place: string) => parameters.filter((each) => each.in === place);
  const record = (entries: typeof parameters, value: (each: (typeof parameters)[number]) => fc.Arbitrary<unknown>) =>
    fc.record(Object.fromEntries(entries.map((each) => [each.name, value(each)])), {
      requiredKeys: entries.filter((each) => each.required).map((each) => each.name),
    });
  const json = requestBody?.content["application/json"]?.schema;
  return fc.record({
    // Often an existing id, so that the call gets past the lookup.
    params: record(of("path"), (each) => fc.oneof(fc.constant(known[each.name] ?? "none"), valueFor(each.schema))),
    query: record(of("query"), (each) => valueFor(each.schema)),
    body: json === undefined ? fc.string() : valueFor(json),
    events: fc.boolean(),
    lastEventId: fc.option(fc.constantFrom("1", "-1", "x", "99999999999999999999"), { nil: undefined }),
  }) as fc.Arbitrary<Attempt>;
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

async function attempt(path: string, method: string, input: Attempt, as: string) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query)) {
    for (const each of Array.isArray(value) ? value : [value]) search.append(name, textOf(each));
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(textOf(input.params[name] ?? "")).replaceAll(".", "%2E"),
  );
  const hasBody = method === "POST" || method === "PUT";
  const response = await ask(`${filled}?${search}`, {
    as,
    method,
    headers: {
      accept: input.events ? "text/event-stream" : "application/json",
      ...(input.lastEventId !== undefined && { "last-event-id": input.lastEventId }),
      ...(hasBody && method === "POST" && { "content-type": "application/json" }),
    },
    ...(hasBody && { body: method === "PUT" ? textOf(input.body) : JSON.stringify(input.body) }),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  // A stream of all events never ends.
  if (response.headers.get("content-type") === "text/event-stream") {
    await response.body?.cancel();
    return { status: response.status, text: "" };
  }
  return { status: response.status, text: await response.text() };
}

describe("arbitrary input to a route", () => {
  test("never causes an internal error or reveals implementation details", async () => {
    // Each call has the scope it requires: a call denied for its scope is not examined further.
    const tokens = { read: await token("read"), run: await token("run"), admin: await token("admin"), sandbox: "", code: "" };
    const { id: sandbox } = (await (await post("/v1/sandboxes")).json()) as { id: string };
    tokens.sandbox = insideToken(sandbox);
    const run = await endedRun();
    const { ref: process } = (await (await post(`/v1/sandboxes/${sandbox}/processes`, { argv: ["cat"], stdin: "pipe" })).json()) as {
      ref: string;
    };
    const known = { sandbox, run, session: run, process };
    for (const { path, method, operation } of operations) {
      const { scope } = routes[operation.operationId as RouteName];
      // The exchange consumes the code. The calls after that are refused, as they must be.
      if (scope === "code") tokens.code = ((await (await post("/v1/codes")).json()) as { code: string }).code;
      const as = tokens[scope];
      await fc.assert(
        fc.asyncProperty(attemptsOn(operation, known), async (input) => {
          const { status, text } = await attempt(path, method, input, as);
          // 501 is a valid answer: it refuses what a runtime cannot do.
          if (status !== 501 && !(status === 503 && text.includes('"unavailable"'))) expect(status, text).toBeLessThan(500);
          expect(text).not.toMatch(/\bat .*\.ts:\d+|node:internal|node_modules/);
          // Every call must pass the scope check: one that fails it tests nothing.
          if (status === 403) expect(text).not.toMatch(/lacks the scope|requires a sandbox.s own token|only valid for calls under/);
          if (status >= 400) expect(JSON.parse(text)).toMatchObject({ status, code: expect.any(String), detail: expect.any(String) });
        }),
        { numRuns: CALLS_PER_ROUTE },
      );
    }
    expect(defects).toEqual([]);
    // Everything that was opened is closed again.
    await expect.poll(() => server().status.requests).toBe(0);
    expect((await station().sandboxes.list()).damaged).toEqual([]);
  });
});
