import { createHash } from "node:crypto";
import type { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import type { CodeView, CreateCode, NewCode } from "../contract/sign-in-code.ts";
import type { NewToken, TokenView } from "../contract/token-verbs.ts";
import { randomLetters } from "../lib/new-id.ts";
import type { TokenVerbs } from "../station/tokens/verbs.ts";
import type { Caller } from "./call.ts";

/** Five bits each. */
const CODE_LETTERS = 32;
const CODE_MS = 60_000;
const CODES_MAX = 100;
const CODES_PER_OWNER_MAX = 10;
const TOKEN_MS = 12 * 3_600_000;
/** Tokens of consoles are called this; a few letters follow. */
const NAME = "console-";
const NAME_LETTERS = 6;

/** A registered code. The station stores its hash and the token that it will create. */
export interface PendingCode {
  readonly view: CodeView;
}

export interface SignInCodes {
  /** Throws `busy` where too many wait already. */
  create(request: z.output<typeof CreateCode>, from: { caller: Caller; owner: string; by: string }): NewCode;
  /** Null for a code that is unknown, used or expired: nothing tells these apart. */
  find(code: string): PendingCode | null;
  /** Creates the token; the code is used up even if that fails. Throws `unauthenticated` where another was first. */
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
 * Kept in this process alone: an unused code leaves nothing behind, and none outlives the station. They
 * are found by their hash, so that how long it takes says nothing about a code.
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
      const found = [...entries].find(([, entry]) => entry === pending);
      // At once, before anything is waited for: of two who exchange one code, one gets a token.
      if (found === undefined || !entries.delete(found[0])) throw codeRefused();
      const { view, token, tokenExpiresInMs } = found[1];
      const { tokens } = options;
      const known = await tokens.list();
      const hasExpired = ({ expiresAt }: TokenView) => expiresAt !== null && Date.parse(expiresAt) <= now();
      if (token !== null && !known.some((each) => each.id === token && !hasExpired(each))) throw codeRefused();
      for (const each of known) if (each.name.startsWith(NAME) && hasExpired(each)) await tokens.revoke(each.id).catch(() => {});
      const { name, owner, scope } = view;
      return await tokens.create({ name, owner, scope, expiresInMs: tokenExpiresInMs });
    },
  };
}

/** One refusal for all: a guess tells nothing about codes that exist. */
export function codeRefused(): CaissonError {
  return new CaissonError("unauthenticated", "this sign-in code is not valid: it was used, it expired, or the station has restarted", {
    hint: "Run `caisson console` again: a code works once, within a minute.",
  });
}

function tooMany(): CaissonError {
  const retryAfterSeconds = CODE_MS / 1000;
  return new CaissonError("busy", "too many sign-in codes wait to be used", {
    hint: `They expire by themselves: try again in ${retryAfterSeconds} s.`,
    details: { retryAfterSeconds },
  });
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
