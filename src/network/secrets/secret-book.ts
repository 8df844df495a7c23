import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { SecretSpec } from "../../contract/network.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import { createAnswerRedactor } from "./answer-redactor.ts";
import { createInjection } from "./inject-secrets.ts";
import { createPlaceholders } from "./placeholder.ts";
import { readSecretFile } from "./read-secret-file.ts";
import { createRedactor, type Redactor } from "./redactor.ts";
import { createSecretScope } from "./secret-scope.ts";
import { secretUnavailable } from "./secret-unavailable.ts";
import { createSecretValues, type SecretValues } from "./secret-values.ts";

/**
 * A file's text and its permission bits. Throws a `CaissonError`, whose message is shown inside, or another error, of
 * which nothing but its `code` is.
 */
export type ReadSecretFile = (path: string, limits: { bytesMax: number }) => Promise<{ text: string; mode: number }>;
/** The standard output of a program of the host. Throws when it fails, likewise. */
export type RunSecretCommand = (argv: readonly string[], limits: { timeoutMs: number; bytesMax: number }) => Promise<string>;

export interface SecretBookOptions {
  specs: Readonly<Record<string, SecretSpec>>;
  /** Those of the sandbox when it is opened again. What is missing is made. */
  placeholders?: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string | undefined>>;
  /** Default: `readSecretFile`. */
  readFile?: ReadSecretFile;
  runCommand: RunSecretCommand;
  revoked?: Iterable<string>;
  /** Told what is worth a word to the user, such as a file that others can read. Never with a value. */
  warn?: (text: string) => void;
  now?: () => number;
}

/** Where a request goes. `host` is a name in lower case or a canonical address. */
export interface SecretDestination {
  host: string;
  port: number;
  tls: boolean;
}

export interface InjectionResult {
  head: RequestHead;
  used: string[];
  withheld: { secret: string; why: string }[];
}

export interface AnswerRedactor {
  head: (head: ResponseHead) => ResponseHead;
  /** One for each body. Holds back only bytes that could be the beginning of a value; never changes a length. */
  body: () => Transform;
}

/**
 * The secrets of one sandbox. Values are had when they are first needed, live in memory alone, and are in no error.
 * What it cannot see: a placeholder in a request's body (it goes as it is), and values that a server sends back
 * compressed, split over requests, encrypted or otherwise changed.
 */
export interface SecretBook {
  /**
   * Inside: variable → placeholder. To be stored with the sandbox. Those that were not stored are made when this is
   * first read, in the shape of the value if that is known by then: after `check`, or of a variable.
   */
  readonly placeholders: Readonly<Record<string, string>>;
  /**
   * Whether TLS to this host and port must be opened because of a secret. True for a revoked one, too: its placeholder
   * must not go out.
   */
  concerns(host: string, port: number): boolean;
  /**
   * Replaces placeholders in the headers of a request where the values may go, also inside of Basic credentials, and
   * tells which were used and which were withheld and why. Throws `denied` with `details.reason` `secret_unavailable`
   * when a value may go there but was revoked or cannot be had; the request must not be sent then.
   */
  inject(head: RequestHead, to: SecretDestination): Promise<InjectionResult>;
  /**
   * For answers to requests that used these: values that come back become placeholders, those of before a change, too.
   * Null when there is nothing to look for. Whoever sends the request asks for an answer that is not compressed:
   * nothing is found in one that is.
   */
  answerRedactor(used: readonly string[]): AnswerRedactor | null;
  /** At once: the next `inject` throws, and so does one that waits for the value. Unknown names are ignored. */
  revoke(name: string): void;
  isRevoked(name: string): boolean;
  /** Calls with the name of each secret that is revoked from now on; the result ends it. */
  onRevoked(listener: (name: string) => void): () => void;
  /** Has every value that can be had, so that the redactor knows it. Never throws. */
  load(): Promise<void>;
  /** Has every value that was not revoked. Throws `invalid` for the first that cannot be had. */
  check(): Promise<void>;
  /** For events, logs and output; one for all. Sees values that become known later, too. */
  redactor(): Redactor;
}

const REDACTORS_MAX = 64;

/** Throws `invalid` for malformed stored placeholders. */
export function createSecretBook(options: SecretBookOptions): SecretBook {
  const { specs, env, runCommand, readFile = readSecretFile, warn = () => {}, now = Date.now } = options;
  const names = Object.keys(specs);
  const values = createSecretValues({ specs, env, readFile, runCommand, warn, now });
  const placeholders = createPlaceholders({ names, stored: options.placeholders ?? {}, peek: values.peek });
  const scopes = new Map(Object.entries(specs).map(([name, spec]) => [name, createSecretScope(spec)]));
  const revoked = new Set(options.revoked);
  const listeners = new Set<(name: string) => void>();
  const redactor = createRedactor({
    version: values.version,
    values: () => names.flatMap((name) => values.known(name).map((value) => ({ name, value }))),
  });
  const usableValue = async (name: string): Promise<string> => {
    if (revoked.has(name)) throw secretUnavailable(name, "it was revoked");
    const value = await values.get(name);
    // It may have been revoked while its source was asked.
    if (revoked.has(name)) throw secretUnavailable(name, "it was revoked");
    if (placeholders.all()[name]?.includes(value)) throw secretUnavailable(name, "its value is part of what stands for it inside");
    return value;
  };
  return {
    get placeholders() {
      return placeholders.all();
    },
    concerns: (host, port) => scopes.values().some((scope) => scope.fits(host, port)),
    inject: createInjection({ placeholders: placeholders.all, scopes, usableValue }),
    answerRedactor: answerRedactors(values, placeholders.all),
    revoke(name) {
      if (!Object.hasOwn(specs, name) || revoked.has(name)) return;
      revoked.add(name);
      for (const listener of listeners) listener(name);
    },
    isRevoked: (name) => revoked.has(name),
    onRevoked(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async load() {
      await Promise.allSettled(names.map((name) => values.get(name)));
    },
    async check() {
      try {
        await Promise.all(names.filter((name) => !revoked.has(name)).map((name) => values.get(name)));
      } catch (error) {
        if (!(error instanceof CaissonError)) throw error;
        throw new CaissonError("invalid", error.message, { details: error.details ?? {} });
      }
    },
    redactor: () => redactor,
  };
}

/** What was made for the same secrets is used again until there is a new value. */
function answerRedactors(values: SecretValues, placeholders: () => Readonly<Record<string, string>>): SecretBook["answerRedactor"] {
  const made = new Map<string, AnswerRedactor | null>();
  let madeFor = -1;
  return (used) => {
    if (used.length === 0) return null;
    if (madeFor !== values.version() || made.size >= REDACTORS_MAX) made.clear();
    madeFor = values.version();
    const key = [...used].sort().join(" ");
    const known = made.get(key);
    if (known !== undefined) return known;
    const returning = used.flatMap((name) => values.known(name).map((value) => ({ value, placeholder: placeholders()[name] ?? "" })));
    const redactor = createAnswerRedactor(returning);
    made.set(key, redactor);
    return redactor;
  };
}
