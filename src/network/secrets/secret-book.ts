import type { Transform } from "node:stream";
import type { SecretSpec } from "../../contract/network.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import type { Redactor } from "./redactor.ts";

/** A file's text and its permission bits. Throws an `Error` whose `code` may be shown; its text never is. */
export type ReadSecretFile = (path: string, limits: { bytesMax: number }) => Promise<{ text: string; mode: number }>;
/** The standard output of a program of the host. Throws when it fails; nothing of the error but its `code` is ever shown. */
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

export interface PutInResult {
  head: RequestHead;
  used: string[];
  withheld: { secret: string; why: string }[];
}

export interface TakeOut {
  head: (head: ResponseHead) => ResponseHead;
  /** One for each body. Holds back only bytes that could be the beginning of a value; never changes a length. */
  body: () => Transform;
}

/**
 * The secrets of one sandbox. Values are had when they are first needed, live in memory alone, and are in no error. What it cannot see: a placeholder in a request's
 * body (it goes as it is), and values that a server sends back compressed, split over requests, encrypted or otherwise changed.
 */
export interface SecretBook {
  /** Inside: variable → placeholder. To be stored with the sandbox. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Whether TLS to this host and port must be opened because of a secret. True for a revoked one, too: its placeholder must not go out. */
  concerns(host: string, port: number): boolean;
  /**
   * Replaces placeholders in the headers of a request where the values may go, also inside of Basic credentials, and tells which were used and which were withheld
   * and why. When one was used, the answer is asked for uncompressed, so that it can be looked through. Throws `denied` with `details.reason` `secret_unavailable`
   * when a value may go there but was revoked or cannot be had; the request must not be sent then.
   */
  putIn(head: RequestHead, to: SecretDestination): Promise<PutInResult>;
  /** For the answer to a request that used these: values that come back become placeholders. Null when none was used. */
  takeOut(used: readonly string[]): TakeOut | null;
  /** At once: the next `putIn` throws, and so does one that waits for the value. Unknown names are ignored. */
  revoke(name: string): void;
  isRevoked(name: string): boolean;
  /** Calls with the name of each secret that is revoked from now on; the result ends it. */
  onRevoked(listener: (name: string) => void): () => void;
  /** Has every value that can be had, so that the redactor knows it. Never throws. */
  load(): Promise<void>;
  /** For events, logs and output. Sees values that become known later, too. */
  redactor(): Redactor;
}
