import { z } from "zod";
import { NameOrId } from "../contract/api/name-or-id.ts";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { defined } from "../lib/defined.ts";
import { ignore, jsonOrNull } from "../lib/failures.ts";
import type { Route } from "../verbs/route.ts";
import type { HeldBody } from "./body-budget.ts";

export const requestLimits = {
  jsonBytesMax: 1024 * 1024,
  /** Deeper than any valid request. Deeper nesting costs a parser its stack. */
  jsonDepthMax: 64,
  /** More than any valid request has. Checking 500,000 takes longer than one caller may block the others. */
  jsonValuesMax: 50_000,
  uploadBytesMax: 64 * 1024 * 1024 * 1024,
  /** How long a JSON body may take in total, and an upload may pause. */
  bodyMs: 30_000,
  queryCharactersMax: 16_384,
} as const;

/** Parses the path parameters. Throws `invalid`. */
export function readParams(route: Taking, values: Readonly<Record<string, string>>): unknown {
  const { params } = derivedOf(route);
  if (params === null) return undefined;
  try {
    return parsePart(params, values, "path");
  } catch (error) {
    throw wrongName(route.params ?? {}, values) ?? error;
  }
}

/** The input of a route or a stream. */
type Taking = Pick<Route, "params" | "query">;

type Kind = "text" | "number" | "boolean" | "list";

/** Derived from a route with its first call, so that the station starts quickly. */
interface Derived {
  params: z.ZodType | null;
  /** How to convert the text of each query parameter, according to its schema. */
  kinds: ReadonlyMap<string, Kind>;
}

const derived = new WeakMap<Taking, Derived>();

function derivedOf(route: Taking): Derived {
  const known = derived.get(route);
  if (known !== undefined) return known;
  const derivation = { params: route.params === undefined ? null : z.object(route.params), kinds: queryKinds(route) };
  derived.set(route, derivation);
  return derivation;
}

function queryKinds(route: Taking): ReadonlyMap<string, Kind> {
  const { properties = {} } = route.query === undefined ? {} : z.toJSONSchema(route.query, { io: "input", unrepresentable: "any" });
  return new Map(Object.entries(properties).map(([name, schema]) => [name, kindOf((schema as { type?: string }).type)]));
}

function kindOf(type: string | undefined): Kind {
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean") return "boolean";
  return type === "array" ? "list" : "text";
}

/** The commands that list what a path parameter may name. */
const listedBy: Readonly<Record<string, string>> = {
  sandbox: "caisson sandbox ls",
  run: "caisson ps",
  session: "caisson session ls",
  token: "caisson token ls",
  ship: "caisson ship ls",
  webhook: "caisson webhook ls",
};
const WORD_SHOWN_MAX = 100;

/** Reports an invalid name as a local station would. Returns null if all names are valid. */
function wrongName(params: NonNullable<Route["params"]>, values: Readonly<Record<string, string>>): CaissonError | null {
  const [what] = Object.entries(params).find(([name, schema]) => schema === NameOrId && !NameOrId.safeParse(values[name]).success) ?? [];
  if (what === undefined) return null;
  const word = JSON.stringify((values[what] ?? "").slice(0, WORD_SHOWN_MAX));
  const list = listedBy[what];
  return new CaissonError("invalid", `${word} is not a ${what} id or name`, defined({ hint: list && `\`${list}\` lists them.` }));
}

/** Parses the query. Throws `invalid`, even for a duplicate or unknown parameter. */
export function readQuery(route: Taking, search: URLSearchParams): unknown {
  if (search.toString().length > requestLimits.queryCharactersMax) throw new CaissonError("too_large", "the query is too long");
  const { kinds } = derivedOf(route);
  const names = [...new Set(search.keys())];
  const entries = names.map((name) => {
    const texts = search.getAll(name);
    const kind = kinds.get(name);
    if (kind === "list") return [name, texts];
    if (texts.length > 1) throw new CaissonError("invalid", `the parameter ${JSON.stringify(name)} is given more than once`);
    return [name, typedValue(texts[0] as string, kind)];
  });
  // Without a prototype, a parameter named __proto__ is treated like any other.
  const values = Object.assign(Object.create(null), Object.fromEntries(entries));
  return parsePart(route.query ?? noQuery, { ...values }, "query");
}

const noQuery = z.strictObject({});

/** Converts a value to its kind. Otherwise it stays text, which the schema rejects. */
function typedValue(text: string, kind: Kind | undefined): unknown {
  if (kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (kind === "number" && /^-?[0-9]{1,15}(\.[0-9]{1,15})?$/.test(text)) return Number(text);
  return text;
}

/**
 * Reads a body. Throws `invalid`, `too_large`, `timeout`, and what `held` throws. A byte body is returned as a bounded
 * stream.
 */
export async function readBody(
  route: Route,
  { headers, chunks }: { headers: Headers; chunks: AsyncIterable<Uint8Array> | null },
  { bodyMs = requestLimits.bodyMs, held }: { bodyMs?: number; held?: HeldBody } = {},
): Promise<unknown> {
  if (route.body === undefined) return undefined;
  const type = headers.get("content-type");
  const { uploadBytesMax, jsonBytesMax } = requestLimits;
  const bytesMax = route.bodyBytesMax ?? (route.body === "bytes" ? uploadBytesMax : jsonBytesMax);
  // A body that announces its excessive length is refused at once.
  if (Number(headers.get("content-length") ?? 0) > bytesMax) throw tooLong(bytesMax);
  if (route.body === "bytes") return boundedBody(chunks, bytesMax);
  const text = await wholeText(chunks, { bytesMax, bodyMs, held });
  if (text === "" && route.bodyOptional === true) return parsePart(route.body, {}, "body");
  if (type !== null && !/^application\/(?:[\w.+-]*\+)?json\b/i.test(type)) {
    throw new CaissonError("invalid", `the content type is ${type.slice(0, 100)}`, {
      hint: "Send JSON, with `content-type: application/json`.",
    });
  }
  refuseUnusualShape(text);
  const value = jsonOrNull(text);
  if (value === null) throw new CaissonError("invalid", "the body is not a JSON object", { hint: "See /v1/openapi.json for its shape." });
  return parsePart(route.body, value, "body");
}

/** Reads the whole body within the time limit: one byte now and then must not hold a request indefinitely. */
async function wholeText(
  body: AsyncIterable<Uint8Array> | null,
  { bytesMax, bodyMs, held }: { bytesMax: number; bodyMs: number; held: HeldBody | undefined },
): Promise<string> {
  const chunks: Uint8Array[] = [];
  const deadline = performance.now() + bodyMs;
  for await (const chunk of boundedBody(body, bytesMax, { waitMs: () => deadline - performance.now() })) {
    held?.add(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Throws `invalid` for deeper nesting or more values than any valid request has. Ignores the content of strings. */
function refuseUnusualShape(text: string): void {
  const { jsonDepthMax, jsonValuesMax } = requestLimits;
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x2c) values++;
    else if (code === 0x5b || code === 0x7b) depth++;
    else if (code === 0x5d || code === 0x7d) depth--;
    if (depth > jsonDepthMax) throw new CaissonError("invalid", `the body is nested more than ${jsonDepthMax} levels deep`);
    if (values > jsonValuesMax) throw new CaissonError("invalid", `the body has more than ${jsonValuesMax} values`);
  }
}

function tooLong(bytesMax: number): CaissonError {
  return new CaissonError("too_large", `the body has more than ${bytesMax} bytes`, { details: { bytesMax } });
}

/** Yields a body up to its size limit. Throws `too_large`, `timeout`. */
export async function* boundedBody(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
  { waitMs = () => requestLimits.bodyMs }: { waitMs?: () => number } = {},
): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body[Symbol.asyncIterator]();
  const patience = new Patience();
  let left = bytesMax;
  try {
    for (;;) {
      const { done, value } = await patience.while(reader.next(), waitMs());
      if (done) return;
      left -= value.length;
      if (left < 0) throw tooLong(bytesMax);
      yield value;
    }
  } finally {
    // Does not wait: an unwanted body is not read further, and may never send anything.
    if (reader.return) void ignore(reader.return(), "the rest of the body is not needed");
    patience.end();
  }
}

/** Times several waits in a row with one timer: creating one for every piece takes longer than forwarding the piece. */
class Patience {
  #timer: NodeJS.Timeout | undefined;
  #waitMs = 0;
  #giveUp: (error: CaissonError) => void = () => {};

  while<Result>(reading: Promise<Result>, waitMs: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      this.#arm(Math.max(0, waitMs));
      reading.then(resolve, (error: unknown) =>
        reject(
          error instanceof CaissonError
            ? error
            : new CaissonError("cancelled", "the connection broke during the body", defined({ cause: error })),
        ),
      );
    });
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #arm(waitMs: number): void {
    if (this.#timer !== undefined && waitMs === this.#waitMs) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#waitMs = waitMs;
    this.#timer = setTimeout(() => this.#giveUp(new CaissonError("timeout", "the body did not arrive in time")), waitMs);
  }
}

function parsePart<Schema extends z.ZodType>(schema: Schema, value: unknown, part: "path" | "query" | "body"): z.output<Schema> {
  const parsed = checkValue(schema, value);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the request's ${part} is invalid: ${tellProblems(parsed.problems)}`);
}
