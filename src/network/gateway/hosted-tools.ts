import type { GatewayWire } from "../../contract/network.ts";
import { isObject, type JsonObject, objectsIn, textIn } from "./json-value.ts";

/** Tools that the program inside carries out itself, or that only look at the conversation. Every other kind runs on the provider's side. */
const ownTools: Record<GatewayWire, RegExp> = {
  anthropic: /^(custom|bash_\d+|text_editor_\d+|computer_\d+|memory_\d+|tool_search_tool_\w+)$/,
  openai: /^(function|custom|local_shell|apply_patch|computer|computer_use_preview|namespace|tool_search)$/,
};

/** Places with JSON of the program's own, in which nothing means anything to the provider. */
const opaqueKeys = new Set(["input_schema", "parameters", "schema", "metadata", "arguments"]);

/**
 * What in a request makes the provider do something on its own side that the sandbox's network policy and the meter do not see: hosted tools, MCP servers, URLs that it
 * fetches. Null when there is nothing of the kind. A tool nobody here knows counts as hosted.
 */
export function hostedUse(wire: GatewayWire, body: JsonObject): string | null {
  for (const key of ["mcp_servers", "web_search_options", "plugins"]) {
    const value = body[key];
    if (value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)) return key;
  }
  const tool = objectsIn(body.tools).find((candidate) => !isOwnTool(wire, candidate));
  if (tool) return `the tool ${JSON.stringify(textIn(tool.type).slice(0, 60))}`;
  return fetchedUrl(body);
}

function isOwnTool(wire: GatewayWire, tool: JsonObject): boolean {
  const type = tool.type;
  if (type === undefined || type === null) return wire === "anthropic";
  if (typeof type !== "string") return false;
  // Codex asks for the search in the provider's own index by default; nothing leaves the provider for it.
  if (wire === "openai" && type === "web_search") return tool.external_web_access === false;
  if (wire === "openai" && type === "shell") return isObject(tool.environment) && tool.environment.type === "local";
  return ownTools[wire].test(type);
}

/** Walks without recursion: the depth is the program's choice. */
function fetchedUrl(body: JsonObject): string | null {
  const left: unknown[] = [body];
  while (left.length > 0) {
    const value = left.pop();
    if (Array.isArray(value)) for (const item of value) left.push(item);
    if (!isObject(value)) continue;
    const found = urlOf(value);
    if (found !== null) return found;
    const isToolCall = textIn(value.type).endsWith("tool_use");
    for (const [key, child] of Object.entries(value)) {
      if (typeof child !== "object" || opaqueKeys.has(key) || (isToolCall && key === "input")) continue;
      left.push(child);
    }
  }
  return null;
}

function urlOf(value: JsonObject): string | null {
  if (value.type === "url" && typeof value.url === "string") return "content that is given as a URL";
  if (typeof value.file_url === "string") return "a file that is given as a URL";
  const image = isObject(value.image_url) ? value.image_url.url : value.image_url;
  return typeof image === "string" && !/^data:/i.test(image) ? "an image that is given as a URL" : null;
}
