import { jsonOrNull } from "../../lib/failures.ts";
/** A JSON object of untrusted shape. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectIn(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns a token count, or null if the value is not one. */
export function countIn(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(Math.trunc(value)) && value >= 0 ? Math.trunc(value) : null;
}

/** Returns null for text that is not a JSON object. */
export function parseObject(text: string): JsonObject | null {
  const value = jsonOrNull(text);
  return isObject(value) ? value : null;
}
