import { z } from "zod";

export type JsonValue = z.core.util.JSONType;

/**
 * JSON of any shape. Checked in one pass: zod's own schema tries six kinds for each value, which blocks the event loop
 * for seconds with a body of 1 MiB.
 */
export const JsonValue = z.unknown().refine(isJson, "must be JSON") as unknown as z.ZodType<JsonValue, JsonValue>;

function isJson(value: unknown): value is JsonValue {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const each = open.pop();
    if (each === null || typeof each === "string" || typeof each === "boolean") continue;
    if (typeof each === "number" && Number.isFinite(each)) continue;
    if (typeof each !== "object" || each === null) return false;
    if (Array.isArray(each)) for (const item of each) open.push(item);
    else if (isPlain(each)) for (const item of Object.values(each)) open.push(item);
    else return false;
  }
  return true;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
