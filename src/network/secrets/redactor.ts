import { Transform } from "node:stream";
import { encodedForms } from "./encodings.ts";
import { createPatternMatcher, type PatternMatcher } from "./pattern-matcher.ts";

/**
 * Replaces known values, and their forms in encodings.ts (which lists what is not found), with `[secret NAME]`. Numbers
 * are not searched.
 */
export interface Redactor {
  text(text: string): string;
  /**
   * Returns the same structure with every string and key redacted. Omits values that are nested more deeply than the
   * limit.
   */
  json<T>(value: T): T;
  /** Holds back only bytes that could be the beginning of a value. */
  stream(): Transform;
}

export interface RedactorSource {
  /** Changes with every new value. */
  version(): number;
  values(): readonly { name: string; value: string }[];
}

const DEPTH_MAX = 200;

/**
 * Creates a redactor that also finds values that become known later: it rebuilds the patterns when the source changes.
 */
export function createRedactor(source: RedactorSource): Redactor {
  let seen = -1;
  let redaction: Redaction | null = null;
  const current = (): Redaction | null => {
    if (seen !== source.version()) {
      seen = source.version();
      redaction = compile(source.values());
    }
    return redaction;
  };
  const text = (before: string): string => {
    const now = current();
    if (now === null || before.length < now.matcher.shortest) return before;
    const bytes = Buffer.from(before);
    const out = redact(bytes, { redaction: now, last: true }).out;
    return out === bytes ? before : out.toString();
  };
  return { text, json: (value) => mapStrings(value, text, 0) as typeof value, stream: () => redactingStream(current) };
}

interface Redaction {
  matcher: PatternMatcher;
  markers: readonly Buffer[];
}

function compile(values: readonly { name: string; value: string }[]): Redaction | null {
  const markerOf = new Map<string, string>();
  for (const { name, value } of values) {
    for (const { pattern } of encodedForms(value, value)) if (!markerOf.has(pattern)) markerOf.set(pattern, name);
  }
  const patterns = [...markerOf.keys()];
  const matcher = createPatternMatcher(patterns.map((pattern) => Buffer.from(pattern)));
  if (matcher === null) return null;
  const byName = new Map(values.map(({ name }) => [name, Buffer.from(markerFor(name, patterns))]));
  return { matcher, markers: [...markerOf.values()].map((name) => byName.get(name) as Buffer) };
}

/** Returns a marker that contains no value, and cannot form one with its neighbors. */
function markerFor(name: string, patterns: readonly string[]): string {
  const candidates = [`[secret ${name}]`, `<secret ${name}>`, `{secret ${name}}`, "***", "…"];
  const safe = (marker: string) =>
    !patterns.some((pattern) => pattern.includes(marker) || marker.includes(pattern) || touches(marker, pattern));
  return candidates.find(safe) ?? "…";
}

/** Checks whether the end of one is the beginning of the other. */
function touches(marker: string, pattern: string): boolean {
  for (let length = 1; length < marker.length; length++) {
    if (pattern.startsWith(marker.slice(-length)) || pattern.endsWith(marker.slice(0, length))) return true;
  }
  return false;
}

/** `out` can be passed on, `rest` may be the beginning of a value. Without a match, `out` is the same memory. */
function redact(bytes: Buffer, { redaction, last }: { redaction: Redaction; last: boolean }): { out: Buffer; rest: Buffer } {
  const { matcher, markers } = redaction;
  const pieces: Buffer[] = [];
  for (let from = 0; ; ) {
    const until = last ? bytes.length : matcher.findUnfinished(bytes, from);
    const match = matcher.find(bytes, from, until);
    if (match === null) {
      if (pieces.length === 0 && until === bytes.length) return { out: bytes, rest: bytes.subarray(until) };
      pieces.push(bytes.subarray(from, until));
      return { out: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces), rest: bytes.subarray(until) };
    }
    pieces.push(bytes.subarray(from, match.at), markers[match.index] as Buffer);
    from = match.at + match.length;
  }
}

function redactingStream(current: () => Redaction | null): Transform {
  let held: Buffer = Buffer.alloc(0);
  const push = (chunk: Buffer, last: boolean): Buffer => {
    const joined = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const redaction = current();
    const { out, rest } = redaction === null ? { out: joined, rest: Buffer.alloc(0) } : redact(joined, { redaction, last });
    held = rest;
    return out;
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const out = push(chunk, false);
      done(null, out.length === 0 ? undefined : out);
    },
    flush(done) {
      const out = push(Buffer.alloc(0), true);
      done(null, out.length === 0 ? undefined : out);
    },
  });
}

function mapStrings(value: unknown, text: (before: string) => string, depth: number): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return null;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, text, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), mapStrings(item, text, depth + 1)]));
}
