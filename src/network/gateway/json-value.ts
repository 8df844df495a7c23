/** A JSON object whose shape nobody has vouched for. */
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

/** A count of tokens, if it is one. */
export function countIn(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(Math.trunc(value)) && value >= 0 ? Math.trunc(value) : null;
}

/** Null for what is not JSON, or no object. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
