import { Transform } from "node:stream";
import type { ResponseHead } from "../http/head.ts";
import type { Header } from "../http/headers.ts";
import { encodedForms } from "./encodings.ts";
import { createPatternMatcher, type PatternMatcher } from "./pattern-matcher.ts";
import type { AnswerRedactor } from "./secret-book.ts";

/** A value that may come back, and its placeholder inside. */
export interface ReturningValue {
  value: string;
  placeholder: string;
}

/**
 * Replaces values with their placeholders in answers, in every encoded form and without changing any length. If a
 * value's length differs from its placeholder's (because it was changed since, or was unknown when the placeholder was
 * created), filler characters of the value's length replace it. Returns null if there is nothing to redact.
 */
export function createAnswerRedactor(values: readonly ReturningValue[]): AnswerRedactor | null {
  const replacing = compile(values);
  if (replacing === null) return null;
  const text = (before: string): string => {
    if (before.length < replacing.matcher.shortest) return before;
    const bytes = Buffer.from(before, "latin1");
    const swept = sweep(bytes, { replacing, fixed: 0, last: true }).bytes;
    return swept === bytes ? before : swept.toString("latin1");
  };
  return {
    head: (head) => withoutValues(head, text),
    body: () => bodyTransform(replacing),
  };
}

interface Replacing {
  matcher: PatternMatcher;
  /** The replacements, by the pattern's index and of the pattern's length. */
  stands: readonly Buffer[];
  filler: number;
}

function compile(values: readonly ReturningValue[]): Replacing | null {
  const known = new Set<string>();
  const forms = values.flatMap(({ value, placeholder }) => {
    const stand = placeholder.length === value.length ? placeholder : "*".repeat(value.length);
    return encodedForms(value, stand).filter(({ pattern }) => !known.has(pattern) && known.add(pattern));
  });
  const filler = fillerFor([...known].join(""));
  const matcher = createPatternMatcher(forms.map(({ pattern }) => Buffer.from(pattern, "latin1")));
  if (matcher === null) return null;
  const stands = forms.map(({ pattern, stand }) =>
    stand.length === pattern.length && stand !== pattern ? Buffer.from(stand, "latin1") : Buffer.alloc(pattern.length, filler),
  );
  return { matcher, stands, filler };
}

/** Returns a character that no pattern contains, so that redacted bytes are never part of a match. */
function fillerFor(patterns: string): number {
  const all = Array.from({ length: 0x7f - 0x21 }, (_, index) => String.fromCharCode(0x21 + index));
  const usable = ["*", "x", ...all].find((letter) => letter !== '"' && letter !== "\\" && !patterns.includes(letter));
  return (usable ?? "*").charCodeAt(0);
}

interface SweepOptions {
  replacing: Replacing;
  /** How many bytes at the beginning were already sent. They are searched, but not changed. */
  fixed: number;
  /** Whether nothing follows. */
  last: boolean;
}

/**
 * Replaces every complete match. Nothing before `until` can still become a match. The bytes are copied before the first
 * change, because they may be shared. A placeholder and its neighbors can form a value by chance, so a match that
 * overlaps a placeholder is redacted, and in the end no match remains.
 */
function sweep(input: Buffer, { replacing, fixed, last }: SweepOptions): { bytes: Buffer; until: number } {
  const { matcher, stands, filler } = replacing;
  let bytes = input;
  let replacedUntil = fixed;
  let from = 0;
  for (;;) {
    const until = last ? bytes.length : matcher.findUnfinished(bytes, fixed);
    const match = matcher.find(bytes, from, until);
    if (match === null) return { bytes, until };
    if (bytes === input) bytes = Buffer.from(input);
    const end = match.at + match.length;
    if (match.at >= replacedUntil) {
      (stands[match.index] as Buffer).copy(bytes, match.at);
      from = Math.max(0, match.at - matcher.longest + 1);
    } else {
      bytes.fill(filler, Math.max(match.at, fixed), end);
      from = match.at + 1;
    }
    replacedUntil = Math.max(replacedUntil, end);
  }
}

function bodyTransform(replacing: Replacing): Transform {
  const { longest } = replacing.matcher;
  const nothing = Buffer.alloc(0);
  let held: Buffer = nothing;
  /** The bytes sent before the held ones. A match that a replacement forms can begin there. */
  let before: Buffer = nothing;
  const push = (chunk: Buffer, last: boolean): Buffer => {
    const joined = held.length === 0 ? chunk : Buffer.concat([before, held, chunk]);
    const fixed = held.length === 0 ? 0 : before.length;
    const { bytes, until } = sweep(joined, { replacing, fixed, last });
    held = bytes.subarray(until);
    before = held.length === 0 ? nothing : bytes.subarray(Math.max(0, until - longest + 1), until);
    return bytes.subarray(fixed, until);
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const out = push(chunk, false);
      done(null, out.length === 0 ? undefined : out);
    },
    flush(done) {
      const out = push(nothing, true);
      done(null, out.length === 0 ? undefined : out);
    },
  });
}

function withoutValues(head: ResponseHead, text: (before: string) => string): ResponseHead {
  const headers: Header[] = head.headers.map((header) => {
    const value = text(header.value);
    return value === header.value ? header : { ...header, value };
  });
  return { ...head, reason: text(head.reason), headers };
}
