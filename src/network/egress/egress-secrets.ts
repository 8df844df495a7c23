import type { Transform } from "node:stream";
import type { RequestHead, ResponseHead } from "../http/head.ts";

/** What egress needs of a sandbox's secrets; the secret book is one. Egress never sees a value but in a head that it is about to send. */
export interface EgressSecrets {
  /** Variable → placeholder. With none, heads are not looked at. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Whether TLS to this host and port must be opened because of a secret. */
  concerns(host: string, port: number): boolean;
  /** Replaces placeholders where the values may go. Any error means that the request may not be sent: a `CaissonError`'s message is shown to the one who asked. */
  inject(
    head: RequestHead,
    to: { host: string; port: number; tls: boolean },
  ): Promise<{ head: RequestHead; used: string[]; withheld: { secret: string; why: string }[] }>;
  /** Turns values that come back into their placeholders, without changing any length. Null when there is nothing to look for. */
  answerRedactor(used: readonly string[]): { head: (head: ResponseHead) => ResponseHead; body: () => Transform } | null;
  isRevoked(name: string): boolean;
}
