import type { z } from "zod";
import { agentRoutes } from "./agent-routes.ts";
import { fileRoutes } from "./file-routes.ts";
import { guardianRoutes } from "./guardian-routes.ts";
import { healthRoutes } from "./health-routes.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import { insideRoutes } from "./inside-routes.ts";
import { machineRoutes } from "./machine-routes.ts";
import { mergeRoutes } from "./merge-routes.ts";
import { networkRoutes } from "./network-routes.ts";
import type { RouteName } from "./paths.ts";
import { processRoutes } from "./process-routes.ts";
import type { Route } from "./route.ts";
import { runRoutes } from "./run-routes.ts";
import { sandboxRoutes } from "./sandbox-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { shipRoutes } from "./ship-routes.ts";
import { specRoutes } from "./spec-routes.ts";
import { stationRoutes } from "./station-routes.ts";
import { uploadRoutes } from "./upload-routes.ts";
import { webhookRoutes } from "./webhook-routes.ts";
import { workflowRoutes } from "./workflow-routes.ts";

/**
 * The table: what every call of the HTTP API takes and gives. The server, its document and the client derive from it.
 */
export const routes = {
  ...stationRoutes,
  ...machineRoutes,
  ...agentRoutes,
  ...sandboxRoutes,
  ...processRoutes,
  ...fileRoutes,
  ...networkRoutes,
  ...runRoutes,
  ...sessionRoutes,
  ...specRoutes,
  ...healthRoutes,
  ...guardianRoutes,
  ...uploadRoutes,
  ...insideRoutes,
  ...inboxRoutes,
  ...shipRoutes,
  ...webhookRoutes,
  ...mergeRoutes,
  ...workflowRoutes,
} as const satisfies Record<RouteName, Route>;

type Routes = typeof routes;
type Schema<Value> = Value extends z.ZodType ? Value : never;

/** What a client says. */
export type QueryInput<Name extends RouteName> = Routes[Name] extends { query: infer Query } ? z.input<Schema<Query>> : undefined;
export type BodyInput<Name extends RouteName> = Routes[Name] extends { body: infer Body }
  ? Body extends "bytes"
    ? Uint8Array | ReadableStream<Uint8Array>
    : z.input<Schema<Body>>
  : undefined;
/** What a server makes of it. */
export type Query<Name extends RouteName> = Routes[Name] extends { query: infer Given } ? z.output<Schema<Given>> : undefined;
export type Body<Name extends RouteName> = Routes[Name] extends { body: infer Given }
  ? Given extends "bytes"
    ? AsyncIterable<Uint8Array>
    : z.output<Schema<Given>>
  : undefined;
export type Json<Name extends RouteName> = Routes[Name]["answer"] extends { json: infer Answer } ? z.output<Schema<Answer>> : undefined;
export type EventData<Name extends RouteName> = Routes[Name]["answer"] extends { events: infer Answer } ? z.output<Schema<Answer>> : never;
/** The names in the braces of a path. */
export type Params<Name extends RouteName> = Routes[Name] extends { params: infer Given } ? { [Key in keyof Given]: string } : undefined;
