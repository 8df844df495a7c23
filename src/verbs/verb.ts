import type { z } from "zod";
import type { Route } from "./route.ts";
import type { RouteName } from "./routes.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Path = `${Method} /v1/${string}`;

/** Returns the ids in a path, which are the first arguments of its verb. */
export const idsInPath = (path: Path): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, id]) => id as string);

/** Returns whether a call takes its input as a query, not as a body. */
export const takesQuery = (path: Path): boolean => /^(?:GET|DELETE) /.test(path);

/**
 * How a verb relates to owners. A kind of thing, such as `run`: the first argument names such a thing, and the caller
 * finds only what it may see. `everyone`: nothing in it belongs to an owner. `admin`: it concerns every owner, so only
 * callers who see everything may use it. `by hand`: src/station/tenancy has a function for it.
 */
export type Owned = OwnedThing | "everyone" | "admin" | "by hand";
export type OwnedThing =
  | "run"
  | "sandbox"
  | "snapshot"
  | "session"
  | "work"
  | "network"
  | "spec"
  | "ship"
  | "merge"
  | "best"
  | "workflow"
  | "webhook"
  | "upload";

/** What a route declares besides its input and answer. */
interface AboutCall extends Omit<Route, "query" | "body" | "answer"> {
  path: Path;
  /** The route name, if it is not `group.verb`. */
  route?: string;
}

/**
 * A verb of the station, declared once: its type, its route with its place in the OpenAPI document, the client's call,
 * the verb of a remote station, the owner check and the lazy proxy derive from it.
 * Its arguments are the ids in its path, then its input merged with `by`, `signal` and `owner`; with `apart`, these are
 * a separate argument after the input. A GET or DELETE takes its input as a query, any other method as a body.
 */
export interface VerbDeclaration extends AboutCall {
  takes?: z.ZodType;
  /** The input field that becomes an argument before the rest of the input. */
  lead?: string;
  /** The type it resolves with, or of each item of its stream. Absent: nothing, or bytes. */
  gives?: z.ZodType;
  /** The field of the JSON answer that holds the result. */
  key?: string;
  /** Default 200, or 204 for a verb without a result. */
  status?: 200 | 201 | 202;
  /**
   * `items`: a stream of objects with one field, whose name is the event's type. `bytes`: a byte stream. `log`:
   * numbered events, as pages or followed. `wait`: an answer that may take long; over HTTP the client repeats the
   * request.
   */
  kind?: "answer" | "items" | "bytes" | "log" | "wait";
  /** The media type, for kind `bytes`. */
  media?: string;
  /** Whether it takes the caller's name for the logs. */
  by?: true;
  /** Whether it takes an abort signal. */
  signal?: true;
  /** Whether it takes the caller's owner. */
  owner?: true;
  apart?: true;
  owned: Owned;
}

/** A verb whose arguments do not follow the rule: its type, handler and call are written by hand. */
type UnusualVerb<Signature> = { owned: Owned } & (({ route?: string; path: Path } & Route) | { path?: undefined; withoutRoute: string }) &
  (Signature extends (...args: never[]) => AsyncIterable<unknown> ? { kind: "stream" } : { kind?: undefined });

/** Carries the type of a verb with its declaration. The field does not exist at run time. */
type Typed<Declared, Signature> = Declared & { readonly "~signature": Signature };

export function verb<const Declared extends VerbDeclaration>(declared: Declared): Typed<Declared, SignatureOf<Declared>> {
  return declared as Typed<Declared, SignatureOf<Declared>>;
}

/** `verbOfType<(run: string) => Promise<RunView>>()({ … })`, for a verb whose arguments do not follow the rule. */
export function verbOfType<Signature>() {
  return <const Declared extends UnusualVerb<Signature>>(declared: Declared): Typed<Declared & { byHand: true }, Signature> =>
    ({ ...declared, byHand: true }) as unknown as Typed<Declared & { byHand: true }, Signature>;
}

/** The verbs of a group as a station implements them. */
export type VerbsOf<Group> = { [Name in keyof Group]: Group[Name] extends { readonly "~signature": infer Signature } ? Signature : never };

type Braces<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? [Name, ...Braces<Rest>] : [];
/** The names in the braces of a path. */
export type IdsOf<Declared> = Declared extends { path: infer Text } ? Braces<Text> : [];
type Strings<Names> = { [Index in keyof Names]: string };

export type InputOf<Declared> = Declared extends { takes: infer Schema extends z.ZodType } ? z.input<Schema> : unknown;
type Fields<Declared> = Declared extends { kind: "wait" }
  ? Omit<InputOf<Declared>, "timeoutMs">
  : Declared extends { lead: infer Field extends keyof InputOf<Declared> }
    ? Omit<InputOf<Declared>, Field>
    : InputOf<Declared>;
type Lead<Declared> = Declared extends { lead: infer Field extends keyof InputOf<Declared> } ? [InputOf<Declared>[Field]] : [];
type Beside<Declared> = (Declared extends { by: true } ? { by: string } : unknown) &
  (Declared extends { signal: true } | { kind: "log" | "wait" } ? { signal?: AbortSignal } : unknown) &
  (Declared extends { owner: true } ? { owner?: string } : unknown) &
  (Declared extends { kind: "log" } ? { fromSeq?: number; follow?: boolean } : unknown);
/** Omitted if it has no fields, optional if it has no required fields. */
type Argument<Value> = keyof Value extends never ? [] : object extends Value ? [input?: Value] : [input: Value];
/** A body is required, even an empty one, unless the route's `bodyOptional` is set. */
type Input<Declared, Value = Fields<Declared>> = Declared extends { takes: z.ZodType; lead?: undefined; bodyOptional?: undefined } & {
  path: `${"POST" | "PUT" | "PATCH"} ${string}`;
}
  ? [input: Value]
  : Argument<Value>;

type Arguments<Declared> = Declared extends { apart: true }
  ? [...Strings<IdsOf<Declared>>, ...Lead<Declared>, ...Input<Declared>, ...Argument<Beside<Declared>>]
  : [...Strings<IdsOf<Declared>>, ...Lead<Declared>, ...Input<Declared, Fields<Declared> & Beside<Declared>>];

export type OutputOf<Declared> = Declared extends { gives: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
type Answer<Declared> = Declared extends { kind: "items" | "log" }
  ? AsyncIterable<OutputOf<Declared>>
  : Declared extends { kind: "bytes" }
    ? AsyncIterable<Uint8Array>
    : Promise<Declared extends { gives: z.ZodType } ? OutputOf<Declared> : void>;

type SignatureOf<Declared> = (...args: Arguments<Declared>) => Answer<Declared>;

/** The same verb as a client's call: the token identifies the caller, and every call takes an abort signal. */
export type CallOf<Declared> = Declared extends { kind: "log" | "wait" }
  ? (...args: [...Strings<IdsOf<Declared>>, options?: Fields<Declared> & Omit<Beside<Declared>, "by" | "owner">]) => Answer<Declared>
  : (
      ...args: [...Strings<IdsOf<Declared>>, ...Lead<Declared>, ...Input<Declared>, options?: { signal?: AbortSignal }]
    ) => Declared extends { kind: "bytes" } ? Promise<ReadableStream<Uint8Array>> : Answer<Declared>;

/** A declaration without its schemas and texts (`verb-facts.ts`). */
export interface VerbFacts {
  /** Absent if the verb is not available over HTTP. */
  readonly route?: RouteName;
  readonly owned: Owned;
  readonly kind?: VerbDeclaration["kind"] | "stream";
  readonly byHand?: true;
  readonly takes?: true;
  readonly lead?: string;
  readonly key?: string;
  readonly by?: true;
  readonly signal?: true;
  readonly owner?: true;
  readonly apart?: true;
}
