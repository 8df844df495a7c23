import { z } from "zod";
import { AgentView } from "../contract/agent/agent-verbs.ts";
import { ExecEvent, ExecResult } from "../contract/api/exec.ts";
import { FileEntry, FileList } from "../contract/api/files.ts";
import { Problem } from "../contract/api/problem.ts";
import { BestEvent } from "../contract/best/best-event.ts";
import { JobEvent } from "../contract/durable/durable-event.ts";
import { FedJobEvent, FedRunEvent, FedSandboxEvent } from "../contract/feed/fed-event.ts";
import { DoctorReport } from "../contract/machine/machine-verbs.ts";
import { MergeEvent } from "../contract/merge/merge-event.ts";
import { Ended } from "../contract/outcome.ts";
import { RunEvent } from "../contract/run/run-event.ts";
import { RunList, RunView } from "../contract/run/run-verbs.ts";
import { SandboxInfo } from "../contract/sandbox/sandbox.ts";
import { SandboxList, SnapshotView } from "../contract/sandbox/sandbox-verbs.ts";
import { AppliedSession, BranchedSession, SessionDetails, SessionDiff, SessionView } from "../contract/session/session-verbs.ts";
import { ShipEvent } from "../contract/ship/ship-event.ts";
import { OwnSpecEvent } from "../contract/spec/spec-event.ts";
import { NewToken, TokenView } from "../contract/token/token-verbs.ts";
import { OwnWorkflowEvent } from "../contract/workflow/workflow-event.ts";
import { defined } from "../lib/defined.ts";
import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { routes } from "../verbs/routes.ts";
import { NumberedEvent } from "../verbs/runs.ts";
import { StationStatus } from "../verbs/station-routes.ts";
import { pathOf } from "../verbs/verb-facts.ts";
import { takesKey } from "./idempotent.ts";
import { refusals, refusalsOf } from "./openapi-refusals.ts";
import { tagDescriptions } from "./openapi-tags.ts";

type Schema = Record<string, unknown>;

/** The schemas of answers, by their names in the document. */
const named = {
  AgentView,
  AppliedSession,
  BranchedSession,
  DoctorReport,
  JobEvent,
  Ended,
  ExecEvent,
  ExecResult,
  FedJobEvent,
  FedRunEvent,
  FedSandboxEvent,
  FileEntry,
  FileList,
  MergeEvent,
  BestEvent,
  NewToken,
  NumberedEvent,
  OwnSpecEvent,
  OwnWorkflowEvent,
  Problem,
  RunEvent,
  RunList,
  RunView,
  SandboxInfo,
  SandboxList,
  SessionDetails,
  SessionDiff,
  SessionView,
  ShipEvent,
  SnapshotView,
  StationStatus,
  TokenView,
};

/** Derives the HTTP API as an OpenAPI 3.1 document from the route table. */
export function openApiDocument(): Record<string, unknown> {
  const components = createComponents();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(routes) as RouteName[]) {
    const { method, path } = pathOf(name);
    paths[path] ??= {};
    paths[path][method.toLowerCase()] = operationOf(name, components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Caisson",
      version: "1",
      description:
        "Sandboxes and agents of one station. Every call requires `Authorization: Bearer TOKEN`, except over the station's own socket.",
      contact: { name: "Caisson" },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://127.0.0.1:7433" }],
    security: [{ token: [] }],
    tags: [...new Set((Object.keys(routes) as RouteName[]).map(tagOf))].map((name) => ({ name, description: tagDescriptions[name] })),
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" }, code: { type: "http", scheme: "bearer" } },
      responses: {
        ...Object.fromEntries(
          [["Problem", "The call failed."] as const, ...Object.values(refusals)].map(([name, description]) => [
            name,
            { description, content: { "application/problem+json": { schema: components.answer(Problem) } } },
          ]),
        ),
      },
      schemas: components.all(),
    },
  };
}

interface Components {
  request(schema: z.ZodType): Schema;
  answer(schema: z.ZodType): Schema;
  all(): Record<string, Schema>;
}

function createComponents(): Components {
  const registry = z.registry<{ id?: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const requests = z.registry<{ id?: string }>();
  const schemas = new Map<string, Schema>();
  const keep = (name: string, schema: Schema) => {
    const before = schemas.get(name);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(schema))
      throw new Error(`two different schemas are named ${name}`);
    schemas.set(name, schema);
  };
  /** Moves the definitions inside a schema, including those of recursive types, into the document's shared schemas. */
  const place = (schema: z.ZodType, options: { io: "input" | "output"; metadata: typeof registry }): Schema => {
    const {
      $schema: _,
      $defs = {},
      ...rest
    } = z.toJSONSchema(schema, { ...options, unrepresentable: "any" }) as Schema & {
      $defs?: Record<string, Schema>;
    };
    const renamed = new Map<string, string>();
    for (const name of Object.keys($defs)) renamed.set(name, name.startsWith("__") ? "Json" : name);
    for (const [name, definition] of Object.entries($defs))
      keep(renamed.get(name) as string, readable(resolveReferences(definition, { renamed, io: options.io }), renamed.get(name)));
    return resolveReferences(rest, { renamed, io: options.io });
  };
  return {
    request: (schema) => place(schema, { io: "input", metadata: requests }),
    // A schema with a name becomes a reference.
    answer: (schema) => place(schema, { io: "output", metadata: registry }),
    all: () => Object.fromEntries([...schemas].sort(([left], [right]) => left.localeCompare(right))),
  };
}

/**
 * Redirects references to the document's own schemas. Allows additional fields in answers, which may get more fields
 * later.
 */
function resolveReferences(value: unknown, { renamed, io }: { renamed: ReadonlyMap<string, string>; io: "input" | "output" }): Schema {
  const walk = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(walk);
    if (typeof each !== "object" || each === null) return each;
    const entries = Object.entries(each)
      .filter(
        ([key, inner]) =>
          !(key === "id" && typeof inner === "string") && !(io === "output" && key === "additionalProperties" && inner === false),
      )
      .map(([key, inner]) => [key, key === "$ref" && typeof inner === "string" ? referenceTo(inner, renamed) : walk(inner)]);
    return readable(Object.fromEntries(entries));
  };
  return walk(value) as Schema;
}

/**
 * Adapts schemas for two kinds of readers. Some require an array's `items` to be a schema, so a tuple is declared by
 * its length. Others cannot express a type that is an array of itself.
 */
function readable(each: Record<string, unknown>, name?: string): Record<string, unknown> {
  const { items, prefixItems, ...rest } = each;
  if (items === false && Array.isArray(prefixItems))
    return { ...rest, prefixItems, items: {}, minItems: prefixItems.length, maxItems: prefixItems.length };
  if (name !== "Json") return each;
  const anyOf = (each.anyOf as Record<string, unknown>[]).map((part) => ({
    ...part,
    ...("items" in part && { items: {} }),
    ...("additionalProperties" in part && { additionalProperties: {} }),
  }));
  return { ...each, anyOf };
}

function referenceTo(reference: string, renamed: ReadonlyMap<string, string>): string {
  const name = /^#\/\$defs\/(.+)$/.exec(reference)?.[1];
  if (name === undefined) throw new Error(`unexpected schema reference ${reference}`);
  return `#/components/schemas/${renamed.get(name) ?? name}`;
}

const tagOf = (name: RouteName): string => name.split(".", 1)[0] ?? "";

function operationOf(name: RouteName, components: Components): Schema {
  const route: Route = routes[name];
  const { body, answer } = route;
  const status = answer.json === undefined && answer.bytes === undefined && answer.events === undefined ? 204 : (answer.status ?? 200);
  const content = {
    ...(answer.json && { "application/json": { schema: components.answer(answer.json) } }),
    ...(answer.events && { "text/event-stream": { schema: components.answer(answer.events) } }),
    ...(answer.bytes && { [answer.bytes]: { schema: { type: "string", format: "binary" } } }),
  };
  const parameters = [...parametersOf(route, components), ...keyParameter(name, route), ...versionParameters(name, route)];
  return {
    operationId: name,
    tags: [tagOf(name)],
    summary: route.summary,
    ...(route.scope === "code" && { security: [{ code: [] }] }),
    description:
      route.scope === "code"
        ? "Requires a sign-in code."
        : `Requires the scope \`${route.scope}\`${route.reaches === undefined ? "" : ", or `admin` if the body names something on the station's machine"}.`,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: requestBodyOf(route, components) }),
    responses: {
      [status]: { description: "Done.", ...(Object.keys(content).length > 0 && { content }) },
      ...(answer.parts && { 206: { description: "The requested part.", content } }),
      ...refusalsOf(name, route),
      default: { $ref: "#/components/responses/Problem" },
    },
  };
}

/** Returns the key parameter of calls that have an effect and a repeatable answer. */
function keyParameter(name: RouteName, route: Route): Schema[] {
  if (pathOf(name).method !== "POST" || !takesKey(route)) return [];
  return [
    {
      name: "Idempotency-Key",
      in: "header",
      description:
        "A key chosen by the caller: repeating the request with the same key within a day gives the same answer, and has no further effect.",
      schema: { type: "string", minLength: 1, maxLength: 255 },
    },
  ];
}

/** Returns the parameters for conditional and partial requests. */
function versionParameters(name: RouteName, { answer, body }: Route): Schema[] {
  const header = (title: string, description: string) => ({ name: title, in: "header", description, schema: { type: "string" } });
  const { method } = pathOf(name);
  const isRead = method === "GET" && (answer.json !== undefined || answer.parts === true);
  return [
    ...(isRead ? [header("If-None-Match", "An earlier `ETag`: answered with 304 if it still matches.")] : []),
    ...(answer.parts
      ? [header("Range", "One part, such as `bytes=0-99`: answered with 206."), header("If-Range", "The `ETag` that the part belongs to.")]
      : []),
    ...(name === "files.write" && body === "bytes"
      ? [
          header(
            "If-Match",
            "The expected `ETag` of the file to replace: answered with 412 if it differs. Of several requests with the same one, only one succeeds.",
          ),
        ]
      : []),
  ];
}

function requestBodyOf({ body, bodyOptional }: Route, components: Components): Schema {
  const content =
    body === "bytes"
      ? { "application/octet-stream": { schema: { type: "string", format: "binary" } } }
      : { "application/json": { schema: components.request(body as z.ZodType) } };
  return { required: bodyOptional !== true, content };
}

function parametersOf({ params = {}, query, answer }: Route, components: Components): Schema[] {
  const inPath = Object.entries(params).map(([name, schema]) => ({ name, in: "path", required: true, schema: components.request(schema) }));
  const { properties = {}, required = [] } = (query === undefined ? {} : components.request(query)) as {
    properties?: Record<string, Schema>;
    required?: string[];
  };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    ...(required.includes(name) && { required: true }),
    ...(schema.type === "array" && { style: "form", explode: true }),
    schema,
  }));
  const resumes = answer.events !== undefined && answer.events !== ExecEvent;
  const header = {
    name: "Last-Event-ID",
    in: "header",
    description: "The id of the last event received.",
    schema: { type: "integer", minimum: 0 },
  };
  return [...inPath, ...inQuery, ...(resumes ? [header] : [])].map((each) => defined(each));
}
