import { isIP } from "node:net";
import type { Route } from "../contract/api/route.ts";
import { CaissonError } from "../contract/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { Scope, TokenView } from "../contract/token-verbs.ts";
import type { Caller } from "./call.ts";
import { createRates } from "./rates.ts";
import { codeRefused, type PendingCode } from "./sign-in-codes.ts";

export type Authenticate = (token: string) => Promise<TokenView | null>;
/** Whose token it is. */
export type AuthenticateSandbox = (token: string) => SandboxId | null;
export type FindCode = (code: string) => PendingCode | null;

/** Wrong tokens from one address that are answered with 401; the rest of the minute they are `busy`. */
const FAILURES_PER_MINUTE = 20;
/** Far above what programs do that mean well, on a machine that could answer several times as much. */
const REQUESTS_PER_MINUTE = 180_000;
const REQUESTS_AT_ONCE = 6_000;

const rank: Readonly<Record<Scope, number>> = { read: 0, run: 1, admin: 2 };

/** Whether a scope includes another. */
export const mayDo = (has: Scope, needs: Scope): boolean => rank[has] >= rank[needs];

/** Throws `denied` for a token that may not do this. */
export function checkScope(caller: Caller, scope: Route["scope"]): void {
  if (caller.kind === "code" || scope === "code") {
    if (caller.kind === "code" && scope === "code") return;
    throw new CaissonError("denied", "a sign-in code is for signing in, and nothing else is");
  }
  if (caller.kind === "sandbox" || scope === "sandbox") {
    checkInside(caller, scope);
    return;
  }
  if (caller.kind === "socket" || mayDo(caller.token.scope, scope)) return;
  throw new CaissonError("denied", `the token ${caller.token.name} may only ${caller.token.scope}`, {
    hint: `This needs a token with the scope ${scope}: caisson token create NAME --scope ${scope}`,
  });
}

/** A sandbox's token is for the calls of the programs in it, and for nothing else; they are for no other. */
function checkInside(caller: Caller, scope: Route["scope"]): void {
  if (caller.kind === "sandbox" && scope === "sandbox") return;
  if (caller.kind === "sandbox") {
    throw new CaissonError("denied", `the token of sandbox ${caller.sandbox} is only for what programs inside say and hear`, {
      hint: "See the calls under /v1/inside.",
    });
  }
  throw new CaissonError("denied", "this is for the programs in a sandbox, with the sandbox's own token", {
    hint: "Make the sandbox with stationAccess; inside, CAISSON_SANDBOX_TOKEN is its token.",
  });
}

/** Throws `denied` where somebody who may not name anything of the machine does. */
export function checkReach(caller: Caller, reached: readonly string[]): void {
  if (caller.kind !== "token" || caller.token.scope === "admin" || reached.length === 0) return;
  throw new CaissonError(
    "denied",
    `the token ${caller.token.name} may not reach the station's machine, and this names ${reached.join(", ")}`,
    {
      hint: "This needs a token with the scope admin.",
    },
  );
}

/** What the station is called. */
export interface StationNames {
  /** From elsewhere, such as `https://caisson.example.com`; null where only this machine reaches it. */
  publicUrl: string | null;
  /** Of its own port. */
  scheme: "http" | "https";
  /** What its previews are called from elsewhere. */
  previews?: { readonly pattern: string } | null;
}

/**
 * A page in a browser must not talk to the station in its user's name: it would have an `Origin`, or, where a name of
 * its own leads to this machine, another `Host`. Throws `denied`.
 */
export function checkOrigin({ headers, via, names }: { headers: Headers; via: "socket" | "port" | "inside"; names: StationNames }): void {
  const { publicUrl, scheme } = names;
  const host = headers.get("host") ?? "";
  const publicHost = publicUrl === null ? null : new URL(publicUrl).host;
  if (via === "port" && host.toLowerCase() !== publicHost && !isLoopbackHost(host)) {
    throw new CaissonError("denied", `the station is not called ${JSON.stringify(host.slice(0, 100))}`, {
      hint: publicHost === null ? "Ask for 127.0.0.1 or localhost." : `Ask for ${publicHost}.`,
    });
  }
  const origin = headers.get("origin");
  // A proxy may have put its own name for us in the place of the one that the page asked for.
  if (origin !== null && origin !== `${scheme}://${host}` && origin !== publicUrl) {
    throw new CaissonError("denied", "pages of other origins may not talk to the station");
  }
}

function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:[0-9]{1,5}$/, "").toLowerCase();
  return name === "localhost" || isLoopback(name.replace(/^\[(.*)\]$/, "$1"));
}

export function isLoopback(address: string): boolean {
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}

/** A browser says where a request comes from, in a header that no page can set. Throws `denied` for another site. */
function checkSite(headers: Headers): void {
  const site = headers.get("sec-fetch-site");
  if (site === null || site === "same-origin") return;
  throw new CaissonError("denied", "only the console's own pages may use a sign-in code");
}

export interface Gate {
  /**
   * The token of a request. Throws `unauthenticated`, or `busy` for a wrong token of an address that sent too many, and
   * for a token that asks too often.
   */
  admit(request: { authorization: string | null; address: string }): Promise<{ secret: string; token: TokenView }>;
  /** The same for a sandbox's own. */
  admitSandbox(request: { authorization: string | null; address: string }): Promise<{ secret: string; sandbox: SandboxId }>;
  /** The same for a sign-in code, from a page of the station itself. Throws `denied` for one of another site. */
  admitCode(request: { authorization: string | null; address: string; headers: Headers }): Promise<PendingCode>;
}

/** Whether a request comes with a sandbox's token, right or wrong. */
export const hasSandboxToken = (authorization: string | null): boolean => /^Bearer sbt_/i.test(authorization ?? "");

/**
 * A right token is let in whatever else its address sends: many callers share the address of a proxy or a machine, and
 * one look at a file tells a right token from a wrong one. Only wrong tokens, and requests without one, count for the
 * address.
 */
export function createGate(options: {
  authenticate: Authenticate;
  authenticateSandbox: AuthenticateSandbox;
  findCode: FindCode;
  now?: () => number;
  requestsPerMinute?: number;
}): Gate {
  const { now = () => performance.now(), requestsPerMinute = REQUESTS_PER_MINUTE } = options;
  const rates = createRates({ perMinute: requestsPerMinute, burst: Math.min(REQUESTS_AT_ONCE, requestsPerMinute), now });
  const failures = createRates({ perMinute: FAILURES_PER_MINUTE, now });
  const count = (key: string, who: string) => {
    const taken = rates.take(key);
    if (!taken.ok) throw tooOften(`${who} asks too often`, taken.retryAfterSeconds);
  };
  const authenticated = async <Found>(
    { authorization, address }: { authorization: string | null; address: string },
    find: (secret: string) => Promise<Found | null>,
    refused: (why: string) => CaissonError = unauthenticated,
  ): Promise<{ secret: string; found: Found }> => {
    const secret = /^Bearer ([A-Za-z0-9_-]{1,200})$/i.exec(authorization ?? "")?.[1];
    const found = secret === undefined ? null : await find(secret);
    if (secret !== undefined && found !== null) return { secret, found };
    count(`from ${address}`, "this address");
    if (authorization === null) throw refused("no token was given");
    const taken = failures.take(address);
    if (!taken.ok) throw tooOften("too many wrong tokens came from this address, and this is another", taken.retryAfterSeconds);
    throw refused("the token is not valid");
  };
  return {
    async admit(request) {
      const { secret, found } = await authenticated(request, options.authenticate);
      count(found.id, `the token ${found.name}`);
      return { secret, token: found };
    },
    async admitSandbox(request) {
      const { secret, found } = await authenticated(request, async (given) => options.authenticateSandbox(given));
      return { secret, sandbox: found };
    },
    async admitCode(request) {
      checkSite(request.headers);
      return (await authenticated(request, async (given) => options.findCode(given), codeRefused)).found;
    },
  };
}

function tooOften(what: string, retryAfterSeconds: number): CaissonError {
  return new CaissonError("busy", what, { hint: `Try again in ${retryAfterSeconds} s.`, details: { retryAfterSeconds } });
}

function unauthenticated(why: string): CaissonError {
  return new CaissonError("unauthenticated", why, {
    hint: "Send `Authorization: Bearer TOKEN`; `caisson token create NAME` makes one.",
  });
}
