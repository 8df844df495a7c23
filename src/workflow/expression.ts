import type { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { parseExpression } from "./expressions/engine.ts";
import { plainWords, shorten } from "./expressions/evaluate.ts";

type Json = z.core.util.JSONType;

/**
 * The variables of an expression. They include no secrets, no time but the event's and no randomness, so the same scope
 * always gives the same value.
 */
export type Scope = Readonly<Record<string, Json>>;

/** Returns an expression's value. Throws `UNKNOWN` if the value is not known yet. */
export type Evaluate = (expression: string) => Json;

/** Thrown for a value that is not known yet. The decision is made again once it is. */
export const UNKNOWN: unique symbol = Symbol("a value that is not known yet");

/** Returns what is wrong with an expression, as far as we can tell without values; null if nothing is. */
export function expressionProblem(expression: string): string | null {
  try {
    parseExpression(expression);
    return null;
  } catch (error) {
    return plainWords(error);
  }
}

/** Evaluates a condition to true or false. Throws `invalid` for any other value. */
export function evaluateCondition(expression: string, evaluate: Evaluate): boolean {
  const value = evaluate(expression);
  if (typeof value === "boolean") return value;
  throw new CaissonError("invalid", `the expression ${shorten(expression)} gives ${kindOf(value)}, not true or false`);
}

/**
 * Replaces each `${ … }` in a value with the expression's value: a text that is only an expression becomes the value
 * itself, any other text includes the value as text. If some values are unknown, requests all of them at once.
 */
export function fillIn(value: Json, evaluate: Evaluate): Json {
  let isUnknown = false;
  for (const { expression } of expressionsIn(value)) {
    try {
      evaluate(expression);
    } catch (error) {
      if (error !== UNKNOWN) throw error;
      isUnknown = true;
    }
  }
  if (isUnknown) throw UNKNOWN;
  return fillValue(value, evaluate);
}

function fillValue(value: Json, evaluate: Evaluate): Json {
  if (typeof value === "string") return fillText(value, evaluate);
  if (Array.isArray(value)) return value.map((each) => fillValue(each, evaluate));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fillValue(each as Json, evaluate)]));
}

function fillText(text: string, evaluate: Evaluate): Json {
  const parts = partsOf(text);
  const [only] = parts;
  if (parts.length === 1 && only?.expression !== undefined) return evaluate(only.expression);
  return parts.map(({ text: plain, expression }) => (expression === undefined ? plain : asText(evaluate(expression)))).join("");
}

/** Returns the expressions in a value, with their paths. */
export function expressionsIn(value: Json, path: readonly PropertyKey[] = []): { path: readonly PropertyKey[]; expression: string }[] {
  if (typeof value === "string")
    return partsOf(value).flatMap(({ expression }) => (expression === undefined ? [] : [{ path, expression }]));
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, each]) => expressionsIn(each as Json, [...path, Array.isArray(value) ? Number(key) : key]));
}

/**
 * Splits a text into plain parts and expressions. `$${` is a literal `${`. Braces and quotes within an expression may
 * be nested.
 */
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

const asText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
const kindOf = (value: Json): string => (value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);
