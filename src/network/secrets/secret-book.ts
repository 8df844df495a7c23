import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
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
 * Returns a file's text and its permission bits. If it throws a `CaissonError`, the error's message is visible inside.
 * Of any other error, only the `code` is visible.
 */
export type ReadSecretFile = (path: string, limits: { bytesMax: number }) => Promise<{ text: string; mode: number }>;
/** Returns the standard output of a program on the host. If it fails, throws like `ReadSecretFile`. */
export type RunSecretCommand = (argv: readonly string[], limits: { timeoutMs: number; bytesMax: number }) => Promise<string>;

export interface SecretBookOptions {
  configs: Readonly<Record<string, SecretConfig>>;
  /** The stored placeholders of a reopened sandbox. Missing ones are created. */
  placeholders?: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string | undefined>>;
  /** Default: `readSecretFile`. */
  readFile?: ReadSecretFile;
  runCommand: RunSecretCommand;
  revoked?: Iterable<string>;
  /** Receives warnings for the user, such as about a file that others can read. They never contain a value. */
  warn?: (text: string) => void;
  now?: () => number;
}

/** The destination of a request. `host` is a name in lower case or a canonical address. */
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
  /**
   * Creates a transform for each body. It holds back only bytes that could be the beginning of a value, and never
   * changes a length.
   */
  body: () => Transform;
}

/**
 * The secrets of one sandbox. Values are fetched on first use, kept only in memory, and never included in an error. It
 * cannot see a placeholder in a request body (which is sent unchanged), or values that a server sends back compressed,
 * split over requests, encrypted or otherwise changed.
 */
export interface SecretBook {
  /**
   * The placeholders inside, by variable. Must be stored with the sandbox. The first read creates the missing ones, in
   * the shape of the value if the value is already known (after `check`, or from a variable).
   */
  readonly placeholders: Readonly<Record<string, string>>;
  /**
   * Whether TLS to this host and port must be intercepted because of a secret. True even for a revoked one, because its
   * placeholder must not leave the sandbox.
   */
  concerns(host: string, port: number): boolean;
  /**
   * Replaces placeholders in the headers of a request where the values may be sent, even within Basic credentials, and
   * returns which secrets were used, and which were withheld and why. Throws `denied` with `details.reason`
   * `secret_unavailable` if a value may be sent but was revoked or is not available. The request must not be sent then.
   */
  inject(head: RequestHead, to: SecretDestination): Promise<InjectionResult>;
  /**
   * Returns a redactor for answers to requests that used these secrets. It replaces returned values with their
   * placeholders, including values from before a change. Null if there is nothing to redact. The caller must request an
   * uncompressed answer, because a compressed one cannot be searched.
   */
  answerRedactor(used: readonly string[]): AnswerRedactor | null;
  /**
   * Takes effect at once: the next `inject` throws, and so does an `inject` that waits for the value. Unknown names are
   * ignored.
   */
  revoke(name: string): void;
  isRevoked(name: string): boolean;
  /** Calls `listener` with the name of each secret that is revoked later. The returned function removes it. */
  onRevoked(listener: (name: string) => void): () => void;
  /** Fetches every value that is available, so that the redactor knows it. Never throws. */
  load(): Promise<void>;
  /** Fetches every value that was not revoked. Throws `invalid` for the first one that is not available. */
  check(): Promise<void>;
  /** Returns the shared redactor for events, logs and output. It also finds values that become known later. */
  redactor(): Redactor;
}

const REDACTORS_MAX = 64;

/** Throws `invalid` for malformed stored placeholders. */
export function createSecretBook(options: SecretBookOptions): SecretBook {
  const { configs, env, runCommand, readFile = readSecretFile, warn = () => {}, now = Date.now } = options;
  const names = Object.keys(configs);
  const values = createSecretValues({ configs, env, readFile, runCommand, warn, now });
  const placeholders = createPlaceholders({ names, stored: options.placeholders ?? {}, peek: values.peek });
  const scopes = new Map(Object.entries(configs).map(([name, config]) => [name, createSecretScope(config)]));
  const revoked = new Set(options.revoked);
  const listeners = new Set<(name: string) => void>();
  const redactor = createRedactor({
    version: values.version,
    values: () => names.flatMap((name) => values.known(name).map((value) => ({ name, value }))),
  });
  const usableValue = async (name: string): Promise<string> => {
    if (revoked.has(name)) throw secretUnavailable(name, "it was revoked");
    const value = await values.get(name);
    // It may have been revoked while its source was read.
    if (revoked.has(name)) throw secretUnavailable(name, "it was revoked");
    if (placeholders.all()[name]?.includes(value)) throw secretUnavailable(name, "its value is part of its placeholder");
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
      if (!Object.hasOwn(configs, name) || revoked.has(name)) return;
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

/** Reuses the redactor for the same secrets until there is a new value. */
function answerRedactors(values: SecretValues, placeholders: () => Readonly<Record<string, string>>): SecretBook["answerRedactor"] {
  const redactors = new Map<string, AnswerRedactor | null>();
  let madeFor = -1;
  return (used) => {
    if (used.length === 0) return null;
    if (madeFor !== values.version() || redactors.size >= REDACTORS_MAX) redactors.clear();
    madeFor = values.version();
    const key = [...used].sort().join(" ");
    const known = redactors.get(key);
    if (known !== undefined) return known;
    const returning = used.flatMap((name) => values.known(name).map((value) => ({ value, placeholder: placeholders()[name] ?? "" })));
    const redactor = createAnswerRedactor(returning);
    redactors.set(key, redactor);
    return redactor;
  };
}
