import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress, classifyAddress, reachOf } from "../address/addresses.ts";
import { parseTargetHost } from "../address/target-host.ts";

interface PinOptions {
  allowPrivate: boolean;
  /** For what must not cross the world in the clear. */
  refusePublic?: boolean;
  resolve: (name: string) => Promise<string[]>;
}

/**
 * The address to connect to for a URL that somebody else named: looked up once, and checked. Private addresses only
 * where they are allowed; those that nobody may reach never. `isForbidden`: no later try changes it.
 */
export async function pinnedAddress(
  url: URL,
  { allowPrivate, refusePublic = false, resolve }: PinOptions,
): Promise<string | { error: string; isForbidden: boolean }> {
  const host = parseTargetHost(url.hostname);
  if (host === null) return { error: "its host is none", isForbidden: true };
  let found: string[];
  try {
    found = host.kind === "address" ? [host.text] : await resolve(host.text);
  } catch {
    return { error: `the name ${host.text} could not be looked up`, isForbidden: false };
  }
  const own = new Set(
    Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ address }) => canonicalAddress(address) ?? []),
  );
  const usable = found
    .flatMap((each) => canonicalAddress(each) ?? [])
    .find((each) => {
      const reach = reachOf(classifyAddress(each, own));
      return (reach === "public" && !refusePublic) || (reach === "private" && allowPrivate);
    });
  if (usable !== undefined) return usable;
  if (found.length === 0) return { error: `the name ${host.text} is not known`, isForbidden: false };
  return { error: `${host.text} leads to an address that is not reached`, isForbidden: true };
}

/** For a request that must go to this address, whatever a name means by then. */
export function lookupOf(address: string): LookupFunction {
  const family = isIP(address);
  return (_name, options, done) => {
    if (options.all === true) done(null, [{ address, family }]);
    else done(null, address, family);
  };
}

/** What went wrong with a connection, for people. */
export function connectionWords(error: NodeJS.ErrnoException): string {
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: "the connection was refused",
    ECONNRESET: "the connection was reset",
    ENETUNREACH: "there is no route to it",
    EHOSTUNREACH: "there is no route to it",
    ABORT_ERR: "it was given up",
  };
  return words[error.code ?? ""] ?? `the connection failed (${error.code ?? "unknown"})`;
}
