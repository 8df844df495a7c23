import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayWire } from "../../contract/network/network.ts";
import { matchesStars } from "../../lib/wildcards.ts";
import { countIn, type JsonObject, objectsIn, textIn } from "./json-value.ts";
import type { Route } from "./routes.ts";

const MODEL_LENGTH_MAX = 200;
/**
 * Longer than the text in an event. If this limit cuts a secret in half, we cannot redact it, but the event does not
 * contain that part of the text.
 */
export const TEXT_KEPT_MAX = 65_536;
const CHARACTERS_PER_TOKEN = 4;
/** A long text without whitespace is an image or a file, whose characters are not tokens. */
const ATTACHMENT_LENGTH_MIN = 4096;
const ATTACHMENT_TOKENS = 1600;

/**
 * Returns the model that a request names. Throws `invalid` if it names no model, `denied` if no pattern matches it.
 * Fallbacks, which some upstreams accept, must match too.
 */
export function askedModel(route: Route, body: JsonObject, patterns: readonly string[] | undefined): string {
  const model = body.model;
  if (typeof model !== "string" || model === "" || model.length > MODEL_LENGTH_MAX) {
    throw new CaissonError("invalid", "the body does not name a model", { hint: 'Name one in "model".' });
  }
  const others = [body.models, body.fallbacks].flatMap((list) => (Array.isArray(list) ? list : [])) as unknown[];
  const names = [model, ...others.map((other) => (typeof other === "string" ? other : textIn((other as JsonObject | null)?.model)))];
  for (const name of names) checkModel(route.wire, name, patterns);
  return model;
}

/** A pattern may start with the wire, as models do elsewhere: `anthropic/claude-*`. */
export function allowsModel(wire: GatewayWire, model: string, patterns: readonly string[] | undefined): boolean {
  return patterns === undefined || patterns.some((pattern) => matchesStars(pattern, model) || matchesStars(pattern, `${wire}/${model}`));
}

export function checkModel(wire: GatewayWire, model: string, patterns: readonly string[] | undefined): void {
  if (allowsModel(wire, model, patterns)) return;
  throw new CaissonError("denied", `the model ${JSON.stringify(model)} is not allowed; allowed models: ${patterns?.join(", ")}`, {
    details: { openaiCode: "model_not_found" },
  });
}

/** Returns the limit that the request itself sets on its output tokens, or null. */
export function outputBound(body: JsonObject): number | null {
  const bound = countIn(body.max_tokens) ?? countIn(body.max_completion_tokens) ?? countIn(body.max_output_tokens);
  return bound === null ? null : bound * Math.max(1, countIn(body.n) ?? 1);
}

/** Estimates a request's tokens from its texts, without recursion. */
export function estimatedInputTokens(body: JsonObject): number {
  let tokens = 0;
  const left: unknown[] = [body];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === "string") tokens += estimatedTokens(value);
    else if (typeof value === "number") tokens += 1;
    else if (Array.isArray(value)) for (const item of value) left.push(item);
    else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) left.push(item);
  }
  return Math.ceil(tokens);
}

function estimatedTokens(text: string): number {
  const isAttachment = text.length >= ATTACHMENT_LENGTH_MIN && !/\s/.test(text.slice(0, ATTACHMENT_LENGTH_MIN));
  return isAttachment ? ATTACHMENT_TOKENS : text.length / CHARACTERS_PER_TOKEN;
}

/** Returns the texts since the model last spoke: the user's words and tool results. */
export function askedText(body: JsonObject): string {
  const input = body.messages ?? body.input;
  if (typeof input === "string") return input.slice(0, TEXT_KEPT_MAX);
  if (!Array.isArray(input)) return "";
  if (typeof input[0] === "string")
    return input
      .filter((item) => typeof item === "string")
      .join("\n")
      .slice(0, TEXT_KEPT_MAX);
  const items = objectsIn(input);
  const last = items.findLastIndex(isModels);
  const texts = items.slice(last + 1).map(itemText);
  return texts
    .filter((text) => text !== "")
    .join("\n")
    .slice(0, TEXT_KEPT_MAX);
}

function isModels(item: JsonObject): boolean {
  const type = textIn(item.type);
  return item.role === "assistant" || /(^|_)(call|reasoning)$/.test(type);
}

function itemText(item: JsonObject): string {
  const role = textIn(item.role);
  if (role === "system" || role === "developer") return "";
  const text = contentText(item.content ?? item.output);
  return role === "tool" || textIn(item.type).endsWith("_output") ? `[result] ${text}` : text;
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return objectsIn(content)
    .map((part) => {
      if (typeof part.text === "string") return part.text;
      if (part.type === "tool_result") return `[result] ${flatText(part.content)}`;
      return part.type === undefined ? "" : `[${textIn(part.type)}]`;
    })
    .join("\n");
}

function flatText(content: unknown): string {
  return typeof content === "string"
    ? content
    : objectsIn(content)
        .map((part) => textIn(part.text))
        .join("\n");
}
