import { z } from "zod";
import { NameOrId } from "../contract/api/name-or-id.ts";
import { declaredVerbs } from "./declared-verbs.ts";
import { fileRoutes } from "./file-routes.ts";
import { processRoutes } from "./process-routes.ts";
import type { Route } from "./route.ts";
import { stationRoutes } from "./station-routes.ts";
import { type IdsOf, idsInPath, type OutputOf, type Path, takesQuery, type VerbDeclaration } from "./verb.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 5000;

const EventPageQuery = z.strictObject({
  fromSeq: z.int().min(1).optional(),
  limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
});

type Groups = typeof declaredVerbs;
type RoutesOfGroup<Group extends keyof Groups & string> = {
  [Name in keyof Groups[Group] & string as Groups[Group][Name] extends { path: Path }
    ? Groups[Group][Name] extends { route: infer Route extends string }
      ? Route
      : `${Group}.${Name}`
    : never]: Groups[Group][Name];
};
type Together<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void ? All : never;
/** The declaration of each route: a verb, or a call about the server itself or a sandbox handle. */
type Declared = Together<{ [Group in keyof Groups & string]: RoutesOfGroup<Group> }[keyof Groups & string]> &
  typeof stationRoutes &
  typeof processRoutes &
  typeof fileRoutes;

export type RouteName = keyof Declared & string;
export type RouteWithPath = Route & { path: Path };

/** Every call of the HTTP API with its input and answer. The server and the OpenAPI document derive from it. */
export const routes = {
  ...withPathParams(stationRoutes),
  ...withPathParams(processRoutes),
  ...withPathParams(fileRoutes),
  ...Object.fromEntries(
    Object.entries(declaredVerbs).flatMap(([group, verbs]) =>
      Object.entries(verbs as Record<string, { path?: Path; route?: string }>).flatMap(([name, declared]) =>
        declared.path === undefined ? [] : [[declared.route ?? `${group}.${name}`, routeOf(declared as VerbDeclaration | RouteWithPath)]],
      ),
    ),
  ),
} as Readonly<Record<RouteName, RouteWithPath>>;

function withPathParams(others: Readonly<Record<string, RouteWithPath>>): Record<string, RouteWithPath> {
  return Object.fromEntries(Object.entries(others).map(([name, route]) => [name, routeOf(route)]));
}

function routeOf(declared: VerbDeclaration | RouteWithPath): RouteWithPath {
  const names = idsInPath(declared.path);
  const params = { ...Object.fromEntries(names.map((name) => [name, NameOrId])), ...declared.params };
  const whole = { ...declared, ...(names.length > 0 && { params }) };
  if ("answer" in whole) return whole as RouteWithPath;
  const input = whole.kind === "log" ? EventPageQuery : whole.takes;
  const isQuery = takesQuery(whole.path);
  return { ...whole, ...(input && (isQuery ? { query: input as z.ZodObject } : { body: input })), answer: answerOf(whole) };
}

function answerOf({ gives, key, kind, status, media }: VerbDeclaration): Route["answer"] {
  if (kind === "bytes") return { bytes: media ?? "application/octet-stream" };
  if (gives === undefined) return {};
  if (kind === "items") return { events: gives };
  if (kind === "log") return { json: z.object({ events: z.array(gives), next: z.int().positive().nullable() }), events: gives };
  return { ...(status !== undefined && { status }), json: key === undefined ? gives : z.object({ [key]: gives }) };
}

type InSchema<Schema> = Schema extends z.ZodType ? z.input<Schema> : never;
type OutSchema<Schema> = Schema extends z.ZodType ? z.output<Schema> : never;
type Written<Name extends RouteName, Key extends string> = Declared[Name] extends Record<Key, infer Value> ? Value : undefined;
type QuerySchema<Name extends RouteName> = Declared[Name] extends { answer: object }
  ? Written<Name, "query">
  : Declared[Name] extends { kind: "log" }
    ? typeof EventPageQuery
    : Declared[Name] extends { path: `${"GET" | "DELETE"} ${string}` }
      ? Written<Name, "takes">
      : undefined;
type BodySchema<Name extends RouteName> = Declared[Name] extends { answer: object }
  ? Written<Name, "body">
  : Declared[Name] extends { path: `${"POST" | "PUT" | "PATCH"} ${string}` }
    ? Written<Name, "takes">
    : undefined;

/** The query as a client sends it. */
export type QueryInput<Name extends RouteName> = QuerySchema<Name> extends undefined ? undefined : InSchema<QuerySchema<Name>>;
export type BodyInput<Name extends RouteName> =
  BodySchema<Name> extends undefined
    ? undefined
    : BodySchema<Name> extends "bytes"
      ? Uint8Array | ReadableStream<Uint8Array>
      : InSchema<BodySchema<Name>>;
/** The query as the server parsed it. */
export type Query<Name extends RouteName> = QuerySchema<Name> extends undefined ? undefined : OutSchema<QuerySchema<Name>>;
export type Body<Name extends RouteName> =
  BodySchema<Name> extends undefined
    ? undefined
    : BodySchema<Name> extends "bytes"
      ? AsyncIterable<Uint8Array>
      : OutSchema<BodySchema<Name>>;
export type Json<Name extends RouteName> = Declared[Name] extends { answer: infer Answer }
  ? Answer extends { json: infer Schema }
    ? OutSchema<Schema>
    : undefined
  : Declared[Name] extends { kind: "log" }
    ? { events: OutputOf<Declared[Name]>[]; next: number | null }
    : Declared[Name] extends { key: infer Key extends string }
      ? { [Field in Key]: OutputOf<Declared[Name]> }
      : OutputOf<Declared[Name]>;
export type EventData<Name extends RouteName> = Declared[Name] extends { answer: infer Answer }
  ? Answer extends { events: infer Schema }
    ? OutSchema<Schema>
    : never
  : Declared[Name] extends { kind: "log" | "items" }
    ? OutputOf<Declared[Name]>
    : never;
/** The names in the braces of a path. */
export type Params<Name extends RouteName> =
  IdsOf<Declared[Name]> extends [] ? undefined : { [Key in IdsOf<Declared[Name]>[number] & string]: string };
