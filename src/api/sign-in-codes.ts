import { createHash } from "node:crypto";
import type { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import type { CodeView, CreateCode, NewCode } from "../contract/token/sign-in-code.ts";
import type { NewToken, TokenView } from "../contract/token/token-verbs.ts";
import { ignore } from "../lib/failures.ts";
import { randomLetters } from "../lib/new-id.ts";
import type { TokenVerbs } from "../verbs/tokens.ts";
import type { Caller } from "./call.ts";

/** Each letter encodes five bits. */
const CODE_LETTERS = 32;
const CODE_MS = 60_000;
const CODES_MAX = 100;
const CODES_PER_OWNER_MAX = 10;
const TOKEN_MS = 12 * 3_600_000;
/** The prefix of console token names; a few letters follow. */
const NAME = "console-";
const NAME_LETTERS = 6;

/** A registered code. The station stores its hash and the token that it will create. */
export interface PendingCode {
  readonly view: CodeView;
}

export interface SignInCodes {
  /** Registers a code. Throws `busy` if too many are pending. */
  create(request: z.output<typeof CreateCode>, from: { caller: Caller; owner: string; by: string }): NewCode;
  /** Returns null for an unknown, used or expired code, without telling these apart. */
  find(code: string): PendingCode | null;
  /**
   * Creates the token. The code is used up even if that fails. Throws `unauthenticated` if another caller was first.
   */
  exchange(pending: PendingCode): Promise<NewToken>;
}

interface Entry extends PendingCode {
  readonly registrant: string;
  /** The token that registered it; null for the station's own user. */
  readonly token: string | null;
  readonly expiresAtMs: number;
  readonly tokenExpiresInMs: number;
}

/**
 * Stores codes only in this process, so all codes end with the station, and an unused code leaves nothing behind. Looks
 * codes up by hash, so that timing reveals nothing about them.
 */
export function createSignInCodes(options: { tokens: Pick<TokenVerbs, "create" | "list" | "revoke">; now?: () => number }): SignInCodes {
  const now = options.now ?? Date.now;
  const entries = new Map<string, Entry>();
  const dropExpired = () => {
    for (const [hash, { expiresAtMs }] of entries) if (expiresAtMs <= now()) entries.delete(hash);
  };
  return {
    create({ scope, owner, expiresInMs = TOKEN_MS }, { caller, owner: registrant, by }) {
      dropExpired();
      const own = [...entries.values()].filter((entry) => entry.registrant === registrant);
      if (own.length >= CODES_PER_OWNER_MAX || entries.size >= CODES_MAX) throw tooMany();
      const code = `code_${randomLetters(CODE_LETTERS)}`;
      const expiresAtMs = now() + CODE_MS;
      const expiresAt = new Date(expiresAtMs).toISOString();
      const ofToken = { name: `${NAME}${randomLetters(NAME_LETTERS)}`, owner: owner ?? registrant, scope, expiresAt };
      const token = caller.kind === "token" ? caller.token.id : null;
      const view = { ...ofToken, by, fromSocket: caller.kind === "socket" };
      entries.set(hashOf(code), { view, registrant, token, expiresAtMs, tokenExpiresInMs: expiresInMs });
      return { ...ofToken, code, tokenExpiresInMs: expiresInMs };
    },
    find(code) {
      const entry = entries.get(hashOf(code));
      return entry === undefined || entry.expiresAtMs <= now() ? null : entry;
    },
    async exchange(pending) {
      const match = [...entries].find(([, entry]) => entry === pending);
      // Before anything asynchronous: if two callers exchange one code, only one gets a token.
      if (match === undefined || !entries.delete(match[0])) throw codeRefused();
      const { view, token, tokenExpiresInMs } = match[1];
      const { tokens } = options;
      const known = await tokens.list();
      const hasExpired = ({ expiresAt }: TokenView) => expiresAt !== null && Date.parse(expiresAt) <= now();
      if (token !== null && !known.some((each) => each.id === token && !hasExpired(each))) throw codeRefused();
      for (const each of known)
        if (each.name.startsWith(NAME) && hasExpired(each))
          await ignore(tokens.revoke(each.id), "it has expired; the next exchange removes it");
      const { name, owner, scope } = view;
      return await tokens.create({ name, owner, scope, expiresInMs: tokenExpiresInMs });
    },
  };
}

/** The same refusal in every case: a guess reveals nothing about existing codes. */
export function codeRefused(): CaissonError {
  return new CaissonError("unauthenticated", "this sign-in code is invalid: it was used, it expired, or the station has restarted", {
    hint: "Run `caisson console` again: a code works once, within a minute.",
  });
}

function tooMany(): CaissonError {
  const retryAfterSeconds = CODE_MS / 1000;
  return new CaissonError("busy", "too many unused sign-in codes are pending", {
    hint: `They expire on their own: try again in ${retryAfterSeconds} s.`,
    details: { retryAfterSeconds },
  });
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
