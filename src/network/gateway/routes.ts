import type { IncomingHttpHeaders } from "node:http";
import type { GatewayWire } from "../../contract/network/network.ts";

/** How an answer is read for its tokens. `free` answers have none. */
export type AnswerKind = "messages" | "chat" | "responses" | "embeddings" | "free";

export interface Route {
  wire: GatewayWire;
  method: "GET" | "POST";
  /** The path after the version: `/messages`. */
  path: string;
  kind: AnswerKind;
}

export type RouteMatch =
  | { found: "about" }
  | { found: "route"; route: Route; query: string }
  | { found: "otherMethod"; wire: GatewayWire; allow: string }
  | { found: "nothing"; wire: GatewayWire };

/**
 * All endpoints that are passed on. It omits those that would cost money without being metered here (batches, files,
 * answers fetched later). Codex uses `/responses/compact` and `/responses/input_tokens`.
 */
const routes: readonly Route[] = [
  { wire: "anthropic", method: "POST", path: "/messages", kind: "messages" },
  { wire: "anthropic", method: "POST", path: "/messages/count_tokens", kind: "free" },
  { wire: "openai", method: "POST", path: "/chat/completions", kind: "chat" },
  { wire: "openai", method: "POST", path: "/responses", kind: "responses" },
  { wire: "openai", method: "POST", path: "/responses/compact", kind: "responses" },
  { wire: "openai", method: "POST", path: "/responses/input_tokens", kind: "free" },
  { wire: "openai", method: "POST", path: "/embeddings", kind: "embeddings" },
];
const oneModel = /^\/models\/[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}$/;

/**
 * Clients disagree on whether their base URL includes the version, so a path may contain it twice, once or not at all.
 */
const form = /^(?:\/(anthropic|openai))?((?:\/v1){0,2})(\/.*)?$/;

export function matchRoute(request: { method: string; url: string; headers: IncomingHttpHeaders }): RouteMatch {
  const [path = "/", query = ""] = splitQuery(request.url);
  const parts = form.exec(path);
  if (parts === null) return { found: "nothing", wire: "openai" };
  const [, prefix, version = "", rest = "/"] = parts;
  if (rest === "/") return aboutMatch(request.method);
  const wire = prefix === "anthropic" || prefix === "openai" ? prefix : wireOf(rest, request.headers);
  // A path without prefix and version is accepted only if no other wire has it.
  const there = prefix === undefined && version === "" && rest.startsWith("/models") ? [] : routesAt(wire, rest);
  if (there.length === 0) return { found: "nothing", wire };
  const route = there.find(({ method }) => method === request.method);
  if (route) return { found: "route", route, query };
  const allow = [...there.map(({ method }) => method), "OPTIONS"].join(", ");
  return { found: "otherMethod", wire, allow };
}

function routesAt(wire: GatewayWire, path: string): readonly Route[] {
  if (path === "/models" || oneModel.test(path)) return [{ wire, method: "GET", path, kind: "free" }];
  return routes.filter((route) => route.wire === wire && route.path === path);
}

function aboutMatch(method: string): RouteMatch {
  return method === "GET" || method === "HEAD" ? { found: "about" } : { found: "otherMethod", wire: "openai", allow: "GET, HEAD, OPTIONS" };
}

/** Without a prefix, the path determines the wire. A list of models is Anthropic's if the client sends its version. */
function wireOf(path: string, headers: IncomingHttpHeaders): GatewayWire {
  if (path.startsWith("/messages") || headers["anthropic-version"] !== undefined) return "anthropic";
  return "openai";
}

/** Splits any form of request target into path and query. A base URL with a trailing slash leads to a double slash. */
function splitQuery(url: string): [string, string] {
  const target = url.replace(/^https?:\/\/[^/?]*/i, "");
  const mark = target.indexOf("?");
  const path = (mark < 0 ? target : target.slice(0, mark)).replaceAll(/\/{2,}/g, "/");
  return [path === "" ? "/" : path.replace(/(?<=.)\/$/, ""), mark < 0 ? "" : target.slice(mark)];
}
