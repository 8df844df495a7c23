import { isIP } from "node:net";
import { CaissonError } from "../contract/error/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { Scope, TokenView } from "../contract/token/token-verbs.ts";
import type { Route } from "../verbs/route.ts";
import type { Caller } from "./call.ts";
import { createRates } from "./rates.ts";
import { codeRefused, type PendingCode } from "./sign-in-codes.ts";

export type Authenticate = (token: string) => Promise<TokenView | null>;
/** Returns the sandbox that owns a token, or null. */
export type AuthenticateSandbox = (token: string) => SandboxId | null;
export type FindCode = (code: string) => PendingCode | null;

/** Invalid tokens per minute that one address may send before it gets `busy` instead of 401. */
const FAILURES_PER_MINUTE = 20;
/** Far above what well-behaved programs need, and a fraction of what one machine can serve. */
const REQUESTS_PER_MINUTE = 180_000;
const REQUESTS_AT_ONCE = 6_000;

const rank: Readonly<Record<Scope, number>> = { read: 0, run: 1, admin: 2 };

/** Whether a scope includes another. */
export const mayDo = (has: Scope, needs: Scope): boolean => rank[has] >= rank[needs];

/** Throws `denied` if the caller lacks the scope. */
export function checkScope(caller: Caller, scope: Route["scope"]): void {
  if (caller.kind === "code" || scope === "code") {
    if (caller.kind === "code" && scope === "code") return;
    throw new CaissonError("denied", "signing in requires a sign-in code, which is valid for nothing else");
  }
  if (caller.kind === "sandbox" || scope === "sandbox") {
    checkInside(caller, scope);
    return;
  }
  if (caller.kind === "socket" || mayDo(caller.token.scope, scope)) return;
  throw new CaissonError("denied", `the token ${caller.token.name} lacks the scope ${scope}`, {
    hint: `Use a token with this scope: caisson token create NAME --scope ${scope}`,
  });
}

/** A sandbox's token is only valid for the calls from inside, and these accept no other token. */
function checkInside(caller: Caller, scope: Route["scope"]): void {
  if (caller.kind === "sandbox" && scope === "sandbox") return;
  if (caller.kind === "sandbox") {
    throw new CaissonError("denied", `the token of sandbox ${caller.sandbox} is only valid for calls under /v1/inside`, {
      hint: "See /v1/openapi.json for these calls.",
    });
  }
  throw new CaissonError("denied", "this call requires a sandbox's own token", {
    hint: "Create the sandbox with stationAccess. Programs inside find the token in CAISSON_SANDBOX_TOKEN.",
  });
}

/** Throws `denied` if a caller without the scope `admin` names something on the station's machine. */
export function checkReach(caller: Caller, reached: readonly string[]): void {
  if (caller.kind !== "token" || caller.token.scope === "admin" || reached.length === 0) return;
  throw new CaissonError("denied", `the token ${caller.token.name} may not access the station's machine: ${reached.join(", ")}`, {
    hint: "Use a token with the scope admin.",
  });
}

/** The names of the station. */
export interface StationNames {
  /** The URL for other machines, such as `https://caisson.example.com`; null if only this machine reaches it. */
  publicUrl: string | null;
  /** The scheme of the station's port. */
  scheme: "http" | "https";
  /** The URL pattern of its previews for other machines. */
  previews?: { readonly pattern: string } | null;
}

/**
 * Keeps pages in a browser from calling the station in its user's name. Such a page sends an `Origin`, or another
 * `Host` if its own name resolves to this machine. Throws `denied`.
 */
export function checkOrigin({ headers, via, names }: { headers: Headers; via: "socket" | "port" | "inside"; names: StationNames }): void {
  const { publicUrl, scheme } = names;
  const host = headers.get("host") ?? "";
  const publicHost = publicUrl === null ? null : new URL(publicUrl).host;
  if (via === "port" && host.toLowerCase() !== publicHost && !isLoopbackHost(host)) {
    throw new CaissonError("denied", `${JSON.stringify(host.slice(0, 100))} is not a host name of this station`, {
      hint: publicHost === null ? "Use 127.0.0.1 or localhost." : `Use ${publicHost}.`,
    });
  }
  const origin = headers.get("origin");
  // A proxy may have replaced the host name that the page requested with its own name for us.
  if (origin !== null && origin !== `${scheme}://${host}` && origin !== publicUrl) {
    throw new CaissonError("denied", "pages of other origins may not call the station");
  }
}

function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:[0-9]{1,5}$/, "").toLowerCase();
  return name === "localhost" || isLoopback(name.replace(/^\[(.*)\]$/, "$1"));
}

export function isLoopback(address: string): boolean {
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}

/** Browsers report where a request comes from in a header that pages cannot set. Throws `denied` for another site. */
function checkSite(headers: Headers): void {
  const site = headers.get("sec-fetch-site");
  if (site === null || site === "same-origin") return;
  throw new CaissonError("denied", "only the console's own pages may use a sign-in code");
}

export interface Gate {
  /**
   * Returns the token of a request. Throws `unauthenticated`, or `busy` for an invalid token from an address that sent
   * too many, and for a token with too many requests.
   */
  admit(request: { authorization: string | null; address: string }): Promise<{ secret: string; token: TokenView }>;
  /** Does the same for a sandbox's token. */
  admitSandbox(request: { authorization: string | null; address: string }): Promise<{ secret: string; sandbox: SandboxId }>;
  /**
   * Does the same for a sign-in code that a page of the station itself sends. Throws `denied` for pages of other sites.
   */
  admitCode(request: { authorization: string | null; address: string; headers: Headers }): Promise<PendingCode>;
}

/** Whether a request carries a sandbox's token, valid or not. */
export const hasSandboxToken = (authorization: string | null): boolean => /^Bearer sbt_/i.test(authorization ?? "");

/**
 * Admits a valid token no matter what else its address sends: many callers share the address of a proxy or a machine,
 * and checking a token costs one file lookup. Only invalid tokens, and requests without one, count against the address.
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
    const rate = rates.take(key);
    if (!rate.ok) throw tooOften(`${who} sends too many requests`, rate.retryAfterSeconds);
  };
  const authenticateSecret = async <Match>(
    { authorization, address }: { authorization: string | null; address: string },
    find: (secret: string) => Promise<Match | null>,
    refused: (why: string) => CaissonError = unauthenticatedError,
  ): Promise<{ secret: string; match: Match }> => {
    const secret = /^Bearer ([A-Za-z0-9_-]{1,200})$/i.exec(authorization ?? "")?.[1];
    const match = secret === undefined ? null : await find(secret);
    if (secret !== undefined && match !== null) return { secret, match };
    count(`from ${address}`, "this address");
    if (authorization === null) throw refused("no token was given");
    const rate = failures.take(address);
    if (!rate.ok) throw tooOften("this address sent too many invalid tokens", rate.retryAfterSeconds);
    throw refused("the token is not valid");
  };
  return {
    async admit(request) {
      const { secret, match } = await authenticateSecret(request, options.authenticate);
      count(match.id, `the token ${match.name}`);
      return { secret, token: match };
    },
    async admitSandbox(request) {
      const { secret, match } = await authenticateSecret(request, async (text) => options.authenticateSandbox(text));
      return { secret, sandbox: match };
    },
    async admitCode(request) {
      checkSite(request.headers);
      return (await authenticateSecret(request, async (text) => options.findCode(text), codeRefused)).match;
    },
  };
}

function tooOften(what: string, retryAfterSeconds: number): CaissonError {
  return new CaissonError("busy", what, { hint: `Try again in ${retryAfterSeconds} s.`, details: { retryAfterSeconds } });
}

function unauthenticatedError(why: string): CaissonError {
  return new CaissonError("unauthenticated", why, {
    hint: "Send `Authorization: Bearer TOKEN`; `caisson token create NAME` creates one.",
  });
}
