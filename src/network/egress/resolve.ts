import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { isErrno } from "../../lib/is-errno.ts";
import { type AddressReach, canonicalAddress, classifyAddress, reachOf } from "../address/addresses.ts";
import { type Grant, reaching } from "./decide-egress.ts";
import type { Refusal } from "./denial.ts";
import type { EgressLimits } from "./egress-limits.ts";

/**
 * Where a connection goes, decided once: it is made to one of these addresses and never to a name, so a second answer
 * of the resolver changes nothing.
 */
export interface Pinned {
  /** Checked, in the order in which they are tried. */
  addresses: readonly string[];
  reach: Exclude<AddressReach, "never">;
  /** Only the rules that may lead there. */
  grant: Grant;
}

export interface Resolver {
  /**
   * To be asked only with a grant: a name that is not allowed is never looked up, because the question itself would
   * tell somebody something.
   */
  pin(grant: Grant): Promise<Pinned | { refused: Refusal }>;
}

interface ResolverOptions {
  resolve?: ((name: string) => Promise<string[]>) | undefined;
  ownAddresses?: (() => string[]) | undefined;
  limits: Pick<EgressLimits, "resolveMs" | "resolvesMax" | "addressesMax">;
}

/** Interfaces come and go, and reading them costs something on a host with hundreds of them. */
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
 * The addresses that the grant may lead to. Those behind the first one must be of its kind, because what is allowed may
 * differ between the kinds.
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

/** Which address it was stays here: names of an inner network are nobody's business inside. */
function refusalOf(host: string, isPrivate: boolean): Refusal {
  if (isPrivate)
    return {
      reason: "private_address",
      why: `${host} leads to a private address or to the host itself, which only a rule with "private" allows`,
    };
  return {
    reason: "private_address",
    why: `${host} leads to an address that is never reached: link-local, metadata or reserved`,
    final: true,
  };
}

/**
 * A lookup cannot be taken back, so those that were given up count until they answer. Connections that wait for the
 * same name share one; what comes out of it is checked for each of them.
 */
function boundedLookup(resolve: (name: string) => Promise<string[]>, limits: Pick<EgressLimits, "resolveMs" | "resolvesMax">) {
  const pending = new Map<string, Promise<string[] | Refusal>>();
  const start = (name: string) => {
    const asked = resolve(name)
      .catch((error: unknown): Refusal => ({ reason: lookupFailure(error) }))
      .finally(() => pending.delete(name));
    pending.set(name, asked);
    return asked;
  };
  return async (name: string): Promise<string[] | Refusal> => {
    if (!pending.has(name) && pending.size >= limits.resolvesMax) return { reason: "too_many", why: "too many names are being looked up" };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Refusal>((done) => {
      timer = setTimeout(done, limits.resolveMs, { reason: "lookup_failed", why: `the name ${name} could not be looked up in time` });
    });
    try {
      return await Promise.race([pending.get(name) ?? start(name), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Whether the name is not known, or nobody could be asked about it. */
export function lookupFailure(error: unknown): "unknown_host" | "lookup_failed" {
  return isErrno(error, "ENOTFOUND", "ENODATA") ? "unknown_host" : "lookup_failed";
}

export async function resolveByHost(name: string): Promise<string[]> {
  return (await lookup(name, { all: true, order: "verbatim" })).map(({ address }) => address);
}

function addressesOfInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map(({ address }) => address) ?? []);
}
