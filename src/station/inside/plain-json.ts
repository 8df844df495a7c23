import type { z } from "zod";

type Json = z.core.util.JSONType;

const DEPTH_MAX = 50;

/**
 * Returns the value without control characters, in keys as well, so that code that displays it need not strip them.
 * Keeps line breaks and tabs, and replaces objects and arrays that are nested too deeply by null.
 */
export function plainJson(value: Json, depth = 0): Json {
  if (typeof value === "string") return plain(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return null;
  if (Array.isArray(value)) return value.map((each) => plainJson(each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [plain(key), plainJson(each, depth + 1)]));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const plain = (text: string): string => text.replace(controls, "");
