import { Environment } from "@marcbachmann/cel-js";
import type { z } from "zod";
import { CaissonError } from "../contract/error.ts";

type Json = z.core.util.JSONType;

/** What an expression can see. No secrets, no time but the event's, no chance: the same gives the same. */
export type Scope = Readonly<Record<string, Json>>;

const REMEMBERED_MAX = 2000;
const RESULT_DEPTH_MAX = 32;

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  limits: { maxAstNodes: 1000, maxDepth: 50, maxListElements: 1000, maxMapEntries: 1000, maxCallArguments: 32 },
});

const parsed = new Map<string, ReturnType<Environment["parse"]>>();

function parse(expression: string): ReturnType<Environment["parse"]> {
  const known = parsed.get(expression);
  if (known !== undefined) return known;
  if (parsed.size >= REMEMBERED_MAX) parsed.delete(parsed.keys().next().value ?? "");
  const made = environment.parse(expression);
  parsed.set(expression, made);
  return made;
}

/** What is wrong with an expression, as far as that can be seen without values; null for nothing. */
export function expressionProblem(expression: string): string | null {
  try {
    parse(expression);
    return null;
  } catch (error) {
    return plainWords(error);
  }
}

/** The expression's value. Throws `invalid` with the expression and what is wrong with it. */
export function evaluate(expression: string, scope: Scope): Json {
  try {
    return toJson(parse(expression)(toCel(scope) as Record<string, unknown>), 0);
  } catch (error) {
    throw new CaissonError("invalid", `the expression ${shortened(expression)} cannot be evaluated: ${plainWords(error)}`);
  }
}

/** True or false. Throws `invalid` for anything else. */
export function evaluateCondition(expression: string, scope: Scope): boolean {
  const value = evaluate(expression, scope);
  if (typeof value === "boolean") return value;
  throw new CaissonError("invalid", `the expression ${shortened(expression)} gives ${kindOf(value)}, not true or false`);
}

/**
 * A value in which `${ … }` stands for what expressions give: alone for the value itself, within other text for its
 * text.
 */
export function fillIn(value: Json, scope: Scope): Json {
  if (typeof value === "string") return fillInText(value, scope);
  if (Array.isArray(value)) return value.map((each) => fillIn(each, scope));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fillIn(each as Json, scope)]));
}

function fillInText(text: string, scope: Scope): Json {
  const parts = partsOf(text);
  const [only] = parts;
  if (parts.length === 1 && only?.expression !== undefined) return evaluate(only.expression, scope);
  return parts.map(({ text: plain, expression }) => (expression === undefined ? plain : asText(evaluate(expression, scope)))).join("");
}

/** The expressions in a value, with where they are. */
export function expressionsIn(value: Json, path: readonly PropertyKey[] = []): { path: readonly PropertyKey[]; expression: string }[] {
  if (typeof value === "string")
    return partsOf(value).flatMap(({ expression }) => (expression === undefined ? [] : [{ path, expression }]));
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, each]) => expressionsIn(each as Json, [...path, Array.isArray(value) ? Number(key) : key]));
}

/** `$${` is a `${` that is meant as it is. Braces and quotes within an expression may be nested. */
function partsOf(text: string): { text?: string; expression?: string }[] {
  const parts: { text?: string; expression?: string }[] = [];
  let plain = "";
  for (let at = 0; at < text.length; ) {
    if (text.startsWith("$${", at)) {
      plain += "${";
      at += 3;
    } else if (text.startsWith("${", at)) {
      const end = endOfExpression(text, at + 2);
      if (plain !== "") parts.push({ text: plain });
      plain = "";
      parts.push({ expression: text.slice(at + 2, end).trim() });
      at = end + 1;
    } else plain += text[at++];
  }
  if (plain !== "" || parts.length === 0) parts.push({ text: plain });
  return parts;
}

function endOfExpression(text: string, from: number): number {
  let depth = 0;
  let quote: string | null = null;
  for (let at = from; at < text.length; at++) {
    const letter = text[at];
    if (quote !== null) {
      if (letter === "\\") at++;
      else if (letter === quote) quote = null;
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === "{") depth++;
    else if (letter === "}" && depth-- === 0) return at;
  }
  return text.length;
}

/**
 * CEL's whole numbers are 64 bits wide; JSON's numbers that are whole become those. What is in an object is converted
 * when it is looked at: an expression sees the outputs of all steps, and uses few.
 */
function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (value === null || typeof value !== "object") return value;
  return new Proxy(value, { get: (target, key) => toCel(Reflect.get(target, key)) });
}

function toJson(value: unknown, depth: number): Json {
  if (depth > RESULT_DEPTH_MAX) throw new CaissonError("too_large", `a value is more than ${RESULT_DEPTH_MAX} deep`);
  if (typeof value === "bigint") return Number(value);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return value.map((each) => toJson(each, depth + 1));
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [String(key), toJson(each, depth + 1)]));
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array || typeof value !== "object") throw new CaissonError("invalid", "it gives what JSON cannot say");
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toJson(each, depth + 1)]));
}

const asText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
const kindOf = (value: Json): string => (value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);
const shortened = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** The first line: the library draws a picture below it. */
function plainWords(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
  return line.slice(0, 300);
}
