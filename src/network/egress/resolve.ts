import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { isErrno } from "../../lib/failures.ts";
import { type AddressReach, canonicalAddress, classifyAddress, reachOf } from "../address/addresses.ts";
import { type Grant, reaching } from "./decide-egress.ts";
import type { Refusal } from "./denial.ts";
import type { EgressLimits } from "./egress-limits.ts";

/**
 * The destination of a connection, decided once. We connect to one of these addresses and never to a name, so a
 * different second answer from the resolver has no effect.
 */
export interface Pinned {
  /** The checked addresses, in the order in which we try them. */
  addresses: readonly string[];
  reach: Exclude<AddressReach, "never">;
  /** Only the rules that allow these addresses. */
  grant: Grant;
}

export interface Resolver {
  /**
   * Resolves the host of a grant. It takes a grant because a name that is not allowed must never be looked up: the
   * lookup itself would leak information.
   */
  pin(grant: Grant): Promise<Pinned | { refused: Refusal }>;
}

interface ResolverOptions {
  resolve?: ((name: string) => Promise<string[]>) | undefined;
  ownAddresses?: (() => string[]) | undefined;
  limits: Pick<EgressLimits, "resolveMs" | "resolvesMax" | "addressesMax">;
}

/**
 * How long the interface addresses are cached. They may change, but reading them is expensive on a host with hundreds
 * of interfaces.
 */
const OWN_KEPT_MS = 1000;

export function createResolver({ resolve = resolveByHost, ownAddresses = addressesOfInterfaces, limits }: ResolverOptions): Resolver {
  let own: { addresses: ReadonlySet<string>; atMs: number } | null = null;
  const ownNow = () => {
    if (own === null || Date.now() - own.atMs > OWN_KEPT_MS) {
      own = { addresses: new Set(ownAddresses().flatMap((address) => canonicalAddress(address) ?? [])), atMs: Date.now() };
    }
    return own.addresses;
  };
  const look = boundedLookup(resolve, limits);
  return {
    async pin(grant) {
      const { host } = grant;
      const found = host.kind === "address" ? [host.text] : await look(host.text);
      if (!Array.isArray(found)) return { refused: found };
      return pick({
        grant,
        found: found.flatMap((address) => canonicalAddress(address) ?? []),
        own: ownNow(),
        addressesMax: limits.addressesMax,
      });
    },
  };
}

/**
 * Picks the addresses that the grant allows. All must have the same reach as the first, because the rules for public
 * and private addresses may differ.
 */
function pick(options: {
  grant: Grant;
  found: readonly string[];
  own: ReadonlySet<string>;
  addressesMax: number;
}): Pinned | { refused: Refusal } {
  const { grant, found, own, addressesMax } = options;
  if (found.length === 0) return { refused: { reason: "unknown_host" } };
  let pinned: { addresses: string[]; reach: Pinned["reach"]; grant: Grant } | null = null;
  for (const address of new Set(found)) {
    const reach = reachOf(classifyAddress(address, own));
    const narrowed = reaching(grant, reach);
    if (narrowed === null || reach === "never") continue;
    pinned ??= { addresses: [], reach, grant: narrowed };
    if (pinned.reach === reach && pinned.addresses.length < addressesMax) pinned.addresses.push(address);
  }
  return (
    pinned ?? {
      refused: refusalOf(
        grant.host.text,
        found.some((address) => reachOf(classifyAddress(address, own)) === "private"),
      ),
    }
  );
}

/** Does not name the address: the layout of an internal network must not leak into the sandbox. */
function refusalOf(host: string, isPrivate: boolean): Refusal {
  if (isPrivate)
    return {
      reason: "private_address",
      why: `the address of ${host} is private or the host's own, which only a rule with "private" allows`,
    };
  return {
    reason: "private_address",
    why: `the address of ${host} is link-local, metadata or reserved, which no rule can allow`,
    final: true,
  };
}

/**
 * Bounds the pending lookups. A lookup cannot be cancelled, so abandoned ones count until they answer. Connections that
 * wait for the same name share one lookup, and each checks the result.
 */
function boundedLookup(resolve: (name: string) => Promise<string[]>, limits: Pick<EgressLimits, "resolveMs" | "resolvesMax">) {
  const pending = new Map<string, Promise<string[] | Refusal>>();
  const start = (name: string) => {
    const lookupResult = resolve(name)
      .catch((error: unknown): Refusal => ({ reason: lookupFailure(error) }))
      .finally(() => pending.delete(name));
    pending.set(name, lookupResult);
    return lookupResult;
  };
  return async (name: string): Promise<string[] | Refusal> => {
    if (!pending.has(name) && pending.size >= limits.resolvesMax) return { reason: "too_many", why: "too many names are being looked up" };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Refusal>((done) => {
      timer = setTimeout(done, limits.resolveMs, { reason: "lookup_failed", why: `the lookup of ${name} timed out` });
    });
    try {
      return await Promise.race([pending.get(name) ?? start(name), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Distinguishes an unknown name from a failed lookup. */
export function lookupFailure(error: unknown): "unknown_host" | "lookup_failed" {
  return isErrno(error, "ENOTFOUND", "ENODATA") ? "unknown_host" : "lookup_failed";
}

export async function resolveByHost(name: string): Promise<string[]> {
  return (await lookup(name, { all: true, order: "verbatim" })).map(({ address }) => address);
}

function addressesOfInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map(({ address }) => address) ?? []);
}
