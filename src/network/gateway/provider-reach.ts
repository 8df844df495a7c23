import type { GatewayWire } from "../../contract/network/network.ts";
import { isObject, type JsonObject, textIn } from "./json-value.ts";
import {
  contentTypes,
  type FieldKind,
  opaqueFields,
  ownTools,
  reachingFields,
  searchingModels,
  switchNames,
  topFields,
  urlFields,
} from "./request-grammar.ts";
import type { Route } from "./routes.ts";

const PATH_LENGTH_MAX = 200;

/** The part of a request that reaches out: its path, and a description. */
export interface Reach {
  path: string;
  what: string;
}

/** A place that remains to be checked. */
interface Place {
  value: unknown;
  path: string;
  kind: Exclude<FieldKind, "plain" | "refused"> | "within";
}

/**
 * Finds the part of a request that makes the provider act on its own side, where neither the sandbox's network policy
 * nor the meter applies: hosted tools, MCP servers, URLs that it fetches, files and conversations that it stores.
 * Returns null if there is no such part. Every field, content type and tool counts unless it is known to be harmless.
 */
export function providerReach(route: Pick<Route, "wire" | "kind">, body: JsonObject): Reach | null {
  const left: Place[] = [];
  for (const [key, value] of Object.entries(body)) {
    const found = topField(route, key, value);
    if (found === null) continue;
    if ("what" in found) return found;
    left.push(found);
  }
  // Without recursion, because the program chooses the depth.
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const found = reachAt(route.wire, place, left);
    if (found !== null) return found;
  }
  return null;
}

function topField(route: Pick<Route, "wire" | "kind">, key: string, value: unknown): Reach | Place | null {
  if (isNothing(value)) return null;
  const kind = topFields(route.wire, route.kind).get(key);
  if (kind === undefined) return namesNothing(key, value) ? null : { path: cut(key), what: "a field unknown to the gateway" };
  if (kind === "refused") return { path: key, what: "something on the provider's side" };
  if (kind === "plain") return modelReach(route, key, value);
  return { value, path: key, kind };
}

function modelReach(route: Pick<Route, "kind">, key: string, value: unknown): Reach | null {
  if (route.kind === "embeddings" || !["model", "models", "fallbacks"].includes(key)) return null;
  const names = (Array.isArray(value) ? value : [value]).map((each) => textIn(isObject(each) ? each.model : each));
  const found = names.find((name) => searchingModels.test(name));
  return found === undefined ? null : { path: key, what: `the model ${JSON.stringify(cut(found))}, which searches the web on its own` };
}

function reachAt(wire: GatewayWire, place: Place, left: Place[]): Reach | null {
  const { value, path, kind } = place;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      if (typeof item === "object" && item !== null) left.push({ value: item, path: cut(`${path}[${index}]`), kind });
    return null;
  }
  if (!isObject(value)) return null;
  if (kind === "toolChoice") return chosenReach(wire, value, place, left);
  if (kind === "tools" && !isOwnTool(wire, value)) return { path, what: `the tool ${JSON.stringify(cut(textIn(value.type)))}` };
  if (value.type === "item_reference" || (kind === "content" && !isKnownContent(wire, value)))
    return { path, what: `content of type ${JSON.stringify(cut(textIn(value.type)))}` };
  return fieldsReach(value, place, left);
}

/** Checks the fields of one tool, message, item or part. */
function fieldsReach(value: JsonObject, { path, kind }: Place, left: Place[]): Reach | null {
  const isCall = kind === "content" && /(tool_use|tool_call)$/.test(textIn(value.type));
  for (const [key, child] of Object.entries(value)) {
    const at = cut(path === "" ? key : `${path}.${key}`);
    if (isNothing(child) || opaqueFields.has(key)) continue;
    // The input of a call to the program's own tool.
    if (isCall && key === "input") continue;
    if (reachingFields.test(key)) return { path: at, what: "something on the provider's side" };
    if (key === "source" && isObject(child) && child.type !== undefined && !/^(base64|text|content)$/.test(textIn(child.type)))
      return { path: at, what: `content given as ${JSON.stringify(cut(textIn(child.type)))}` };
    // The audio of an earlier answer, by its id.
    if (key === "audio" && isObject(child) && child.id !== undefined) return { path: `${at}.id`, what: "something on the provider's side" };
    if (urlFields.test(key)) {
      const url = isObject(child) ? child.url : child;
      if (typeof url !== "string" || !/^data:/i.test(url)) return { path: at, what: "content given as a URL" };
    }
    if (typeof child !== "object") continue;
    left.push({ value: child, path: at, kind: kindWithin(key, kind) });
  }
  return null;
}

function kindWithin(key: string, kind: Place["kind"]): Place["kind"] {
  if (key === "tools") return "tools";
  return key === "content" || (key === "output" && kind === "content") ? "content" : "within";
}

/**
 * Checks a tool choice. A chosen tool is normally declared as well, but the provider may also accept kinds of tools
 * that need no declaration.
 */
function chosenReach(wire: GatewayWire, value: JsonObject, place: Place, left: Place[]): Reach | null {
  const type = textIn(value.type);
  const known = /^(auto|any|none|required|tool|allowed_tools)$/.test(type) || isOwnTool(wire, value) || type === "web_search";
  if (!known) return { path: place.path, what: `the tool ${JSON.stringify(cut(type))}` };
  const list = isObject(value.allowed_tools) ? value.allowed_tools.tools : value.tools;
  if (Array.isArray(list)) left.push({ value: list, path: `${place.path}.tools`, kind: "toolChoice" });
  return null;
}

function isKnownContent(wire: GatewayWire, value: JsonObject): boolean {
  const { type } = value;
  // OpenAI reads an item with nothing but an id as a reference to a stored item.
  if (type === undefined || type === null) return wire === "anthropic" || typeof value.role === "string" || typeof value.text === "string";
  return typeof type === "string" && contentTypes[wire].test(type);
}

function isOwnTool(wire: GatewayWire, tool: JsonObject): boolean {
  const { type } = tool;
  if (type === undefined || type === null) return wire === "anthropic";
  if (typeof type !== "string") return false;
  // By default, Codex requests a search in the provider's own index, which contacts no other server.
  if (wire === "openai" && type === "web_search") return tool.external_web_access === false;
  if (wire === "openai" && type === "shell") return isObject(tool.environment) && tool.environment.type === "local";
  return ownTools[wire].test(type);
}

const WORD = /^[a-z]{1,20}([_-][a-z]{1,20}){0,2}$/;
const UNKNOWN_FIELDS_MAX = 1000;

/**
 * Checks that an unknown field can do no more than tune a parameter: it holds numbers or plain words, and no name
 * suggests more.
 */
function namesNothing(key: string, value: unknown): boolean {
  const left: [string, unknown][] = [[key, value]];
  for (let seen = 0; left.length > 0; seen++) {
    const [name, each] = left.pop() as [string, unknown];
    if (seen > UNKNOWN_FIELDS_MAX) return false;
    if (isNothing(each) || typeof each === "number") continue;
    if (switchNames.test(name)) return false;
    if (typeof each === "string" && !WORD.test(each)) return false;
    if (typeof each === "object") for (const [inner, child] of Object.entries(each as object)) left.push([inner, child]);
  }
  return true;
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

const cut = (text: string) => (text.length <= PATH_LENGTH_MAX ? text : `${text.slice(0, PATH_LENGTH_MAX)}…`);
