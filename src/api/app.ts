import type { IncomingMessage } from "node:http";
import { type Context, Hono } from "hono";
import { CaissonError } from "../contract/error/error.ts";
import { LOCAL_OWNER, type OwnerView } from "../contract/token/owner.ts";
import { defined } from "../lib/defined.ts";
import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { routes } from "../verbs/routes.ts";
import type { Station } from "../verbs/station.ts";
import { pathOf } from "../verbs/verb-facts.ts";
import type { Admit, Arrival } from "./admit.ts";
import { bytesAnswer, eventsAnswer, jsonAnswer, problemAnswer, unchangedAnswer, versionedAnswer } from "./answer.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { Audit, SeenCall } from "./audit.ts";
import { type BodyBudget, createBodyBudget } from "./body-budget.ts";
import { bodyChunks } from "./body-chunks.ts";
import { type Call, type Caller, keyOfCaller, type Reply } from "./call.ts";
import { type Conditions, conditionsOf } from "./conditions.ts";
import { createConsolePages } from "./console/console-pages.ts";
import { checkOrigin, checkReach, checkScope, type StationNames } from "./gate.ts";
import { allHandlers } from "./handlers/all-handlers.ts";
import type { StationControl } from "./handlers/station.ts";
import { answerOnce, keyedCall, type ReadCall } from "./idempotent.ts";
import type { McpConnections } from "./mcp/http-connections.ts";
import type { ToolAudit } from "./mcp/mcp-tool.ts";
import type { Observation } from "./observe/observation.ts";
import type { SeenRequest } from "./observe/observer.ts";
import type { OpenRequests, RequestLife } from "./open-requests.ts";
import type { CreationPlaces } from "./overload/creation-places.ts";
import { readBody, readParams, readQuery } from "./read-call.ts";
import { createSandboxCalls } from "./sandbox-calls.ts";

export interface AppOptions {
  /** Returns the station as a caller sees it. */
  stationFor(view: OwnerView): Station;
  admit: Admit;
  audit: Audit;
  server: StationControl;
  creations: Pick<CreationPlaces, "take">;
  requests: OpenRequests;
  /** The answers to calls with a key, opened with the first such call. */
  answers(): AnswerStore;
  /** Receives defects. Callers only learn that the station failed. */
  onDefect: (error: unknown) => void;
  /** The connections of MCP clients, loaded with the first. */
  mcp(): Promise<McpConnections>;
  observation: Observation;
  /** The folder of the built console, which may be missing. */
  consoleDir: string;
  names: StationNames;
}

export interface App {
  /** `body` is the request's raw body: reading it as a web stream would copy it. */
  fetch(request: Request, from: { arrival: Arrival; body: IncomingMessage }): Promise<Response>;
}

type Env = { Bindings: { arrival: Arrival; body: IncomingMessage; summary: SeenRequest } };

/**
 * Serves the route table over a station: checks each request, turns it into a call of one verb, and writes its answer.
 */
export function createApp(options: AppOptions): App {
  const { requests, onDefect, audit } = options;
  const handlers = allHandlers(options);
  const bodies = createBodyBudget();
  const sandboxCalls = createSandboxCalls();
  const app = new Hono<Env>();
  const admitRequest = async (
    context: Context<Env>,
    name: RouteName | null,
    work: (caller: Caller, admission: { life: RequestLife; call: SeenCall }) => Promise<Response>,
  ): Promise<Response> => {
    const call = seenCall(context, name);
    const { summary } = context.env;
    if (name !== null) summary.route = name;
    let life: RequestLife | undefined;
    try {
      const { req, env } = context;
      const authorization = req.header("authorization") ?? null;
      const needs = name !== null && (routes[name] as Route).scope === "code" ? ("code" as const) : undefined;
      const { caller, stillValid } = await options.admit({
        headers: req.raw.headers,
        authorization,
        arrival: env.arrival,
        ...defined({ needs }),
      });
      call.caller = caller;
      summary.caller = caller;
      const token = caller.kind === "token" ? caller.token : undefined;
      life = requests.begin({ disconnected: req.raw.signal, ...defined({ stillValid, token }) });
      return await work(caller, { life, call });
    } catch (error) {
      await audit.recordFailure(call, error);
      // Only after the audit entry: a station that ends waits for pending ones.
      life?.end();
      return problemAnswer(error, { request: context.req.raw, onDefect });
    }
  };
  for (const name of Object.keys(routes) as RouteName[]) {
    const { method, path } = pathOf(name);
    const route: Route = routes[name];
    const handle = handlers[name] as (call: unknown) => Promise<Reply<RouteName>>;
    app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) =>
      admitRequest(context, name, async (caller, { life, call: admittedCall }) => {
        // The router treats HEAD as GET, and would leave a stream without a reader.
        const conditions = conditionsOf(context.req.raw);
        if (context.req.raw.method !== method && !(conditions.isHead && route.answer.parts === true)) throw notThere(context);
        if (caller.kind === "sandbox") sandboxCalls.count(caller.sandbox, name);
        checkScope(caller, route.scope);
        const call = await readCall(context, { route, ...ofCaller(caller, options), life, bodies });
        if (route.reaches !== undefined) checkReach(caller, route.reaches(call.body as never, call.query as never));
        const make = async () => {
          using _place = await options.creations.take(name, keyOfCaller(caller));
          const audited = audit.record(admittedCall, route.audited?.(call.body as never));
          await (route.worksWithoutDisk === true ? audited.catch(onDefect) : audited);
          return await handle(call);
        };
        const key = context.req.header("idempotency-key") ?? null;
        const keyed = await keyedCall(call as ReadCall, { name, route, method, key, caller });
        if (keyed === null) return await answerOf(route, await make(), { life, onDefect, conditions, method });
        const answered = await answerOnce(keyed, { answers: options.answers(), onDefect, make });
        if ("reply" in answered) return await answerOf(route, answered.reply, { life, onDefect, conditions, method });
        life.end();
        return answered.again;
      }),
    );
  }
  app.all("/mcp", (context) =>
    admitRequest(context, null, async (caller, { life, call }) => {
      context.env.summary.route = "mcp";
      const { station, by } = ofCaller(caller, options);
      if (caller.kind === "sandbox" || caller.kind === "code") checkScope(caller, "run");
      const ofMcp = {
        station,
        by,
        audit: auditOfTools(audit, call),
        ...(caller.kind === "token" ? { key: caller.token.id, scope: caller.token.scope } : socketMcp),
      };
      return (await options.mcp()).answer(context.req.raw, { caller: ofMcp, life });
    }),
  );
  observeRoutes(app, { ...options, admitRequest });
  const consolePage = createConsolePages({ folder: options.consoleDir, names: options.names });
  app.notFound(async (context) => {
    const page = await consolePage(context.req.raw, context.env.arrival);
    if (page !== null) {
      context.env.summary.route = "console";
      const { arrival } = context.env;
      if (arrival.via === "port" && page.status < 400) arrival.connection?.servePage();
      return page;
    }
    return admitRequest(context, null, async () => {
      throw notThere(context);
    });
  });
  const { observer } = options.observation;
  return { fetch: (request, from) => observer.watch(request, async (summary) => app.fetch(request, { ...from, summary })) };
}

type AdmitRequest = (
  context: Context<Env>,
  name: null,
  work: (caller: Caller, admission: { life: RequestLife }) => Promise<Response>,
) => Promise<Response>;

/** Adds the routes that are not verbs of the station: health and metrics. */
function observeRoutes(
  app: Hono<Env>,
  { observation, admitRequest, names, onDefect }: Pick<AppOptions, "observation" | "names" | "onDefect"> & { admitRequest: AdmitRequest },
): void {
  const { health } = observation;
  const onRoute = (answer: () => Response | Promise<Response>, route: string) => (context: Context<Env>) => {
    const { summary, arrival } = context.env;
    summary.route = route;
    const request = context.req.raw;
    try {
      checkOrigin({ headers: request.headers, via: arrival.via, names });
    } catch (error) {
      return problemAnswer(error, { request, onDefect });
    }
    return answer();
  };
  app.get("/healthz", onRoute(health.alive, "healthz"));
  app.get("/readyz", onRoute(health.ready, "readyz"));
  app.get("/metrics", (context) => {
    const { summary, arrival } = context.env;
    summary.route = "metrics";
    if (observation.isOpenTo({ headers: context.req.raw.headers, arrival })) return observation.metrics();
    return admitRequest(context, null, async (caller, { life }) => {
      checkScope(caller, "read");
      const figures = await observation.metrics();
      life.end();
      return figures;
    });
  });
}

function seenCall({ req, env: { arrival } }: Context<Env>, name: RouteName | null): SeenCall {
  const address = arrival.via === "port" ? arrival.address : null;
  // Calls from inside are in the log of the sandbox or its run.
  const changes = !["GET", "HEAD"].includes(req.raw.method) && (name === null || (routes[name] as Route).scope !== "sandbox");
  return { action: name, changes, caller: null, address, params: name === null ? { path: req.path } : req.param() };
}

/** Audits each tool call of a model as a separate call. */
function auditOfTools(audit: Audit, { caller, address }: SeenCall): ToolAudit {
  const callOf = (tool: string): SeenCall => ({ action: `mcp.${tool}`, changes: true, caller, address, params: {} });
  return {
    record: (tool, subject) => audit.record(callOf(tool), subject),
    recordFailure: (tool, error) => audit.recordFailure(callOf(tool), error),
  };
}

const socketMcp = { key: "socket", scope: "admin" } as const;

async function readCall(
  { req, env }: Context<Env>,
  { route, life, bodies, ...ofCaller }: { route: Route; life: RequestLife; bodies: BodyBudget } & OfCaller,
): Promise<{ [Key in keyof Call<RouteName>]: unknown }> {
  const wants = wantsOf(route, req.header("accept") ?? "");
  using held = bodies.hold(keyOfCaller(ofCaller.caller));
  return {
    ...ofCaller,
    params: readParams(route, req.param()),
    query: readQuery(route, new URL(req.url).searchParams),
    body: await readBody(route, { headers: req.raw.headers, chunks: bodyChunks(env.body) }, { held }),
    wants,
    conditions: conditionsOf(req.raw),
    traceparent: env.summary.traceparent,
    lastEventId: req.header("last-event-id") ?? null,
    signal: wants === "events" ? life.streamSignal : life.signal,
  };
}

type OfCaller = Pick<Call<RouteName>, "station" | "caller" | "owner" | "by" | "sandbox" | "scope">;

/**
 * Callers with every right see everything; others see what belongs to their owner. Programs inside can only name their
 * own sandbox.
 */
export function ofCaller(caller: Caller, { stationFor }: Pick<AppOptions, "stationFor">): OfCaller {
  if (caller.kind === "code") {
    const { owner, name } = caller.pending.view;
    const station = stationFor({ owner, sees: "own" });
    return { station, caller, owner, by: `code for ${name}`, sandbox: null, scope: null };
  }
  if (caller.kind !== "token") {
    const station = stationFor({ owner: LOCAL_OWNER, sees: "everything" });
    if (caller.kind === "socket") return { station, caller, owner: LOCAL_OWNER, by: "user", sandbox: null, scope: "admin" };
    return { station, caller, owner: LOCAL_OWNER, by: `sandbox ${caller.sandbox}`, sandbox: caller.sandbox, scope: null };
  }
  const { owner, scope, name } = caller.token;
  return {
    station: stationFor({ owner, sees: scope === "admin" ? "everything" : "own" }),
    caller,
    owner,
    by: `token ${name}`,
    sandbox: null,
    scope,
  };
}

function wantsOf({ answer }: Route, accept: string): "json" | "events" {
  if (answer.events === undefined) return "json";
  return (answer.json === undefined && answer.bytes === undefined) || accept.includes("text/event-stream") ? "events" : "json";
}

async function answerOf(
  { answer }: Route,
  reply: Reply<RouteName>,
  { life, onDefect, conditions, method }: { life: RequestLife; onDefect: (error: unknown) => void; conditions: Conditions; method: string },
): Promise<Response> {
  const streamed = {
    abort: life.abort,
    async release() {
      try {
        if ("release" in reply) await reply.release?.();
      } catch (error) {
        onDefect(error);
      } finally {
        life.end();
      }
    },
  };
  if ("events" in reply) return eventsAnswer(reply.events, { ...streamed, signal: life.streamSignal, onDefect });
  if ("bytes" in reply) {
    const { sizeBytes, etag, part } = reply;
    const type = answer.bytes ?? "application/octet-stream";
    const { isHead } = conditions;
    return bytesAnswer(reply.bytes, { ...streamed, type, isHead, ...defined({ sizeBytes, etag, part, parts: answer.parts }) });
  }
  life.end();
  if ("unchanged" in reply) return unchangedAnswer(reply.unchanged.etag);
  if (!("json" in reply)) return new Response(null, { status: 204 });
  return method === "GET" ? versionedAnswer(reply.json, conditions) : jsonAnswer(reply.json, answer.status ?? 200);
}

function notThere({ req }: Context<Env>): CaissonError {
  return new CaissonError("not_found", `there is no ${req.raw.method} ${req.path.slice(0, 200)}`, {
    hint: "See /v1/openapi.json for all calls.",
  });
}
