import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress, classifyAddress, reachOf } from "../address/addresses.ts";
import { parseTargetHost } from "../address/target-host.ts";

interface PinOptions {
  allowPrivate: boolean;
  /** For requests that must not cross the internet in plain text. */
  refusePublic?: boolean;
  resolve: (name: string) => Promise<string[]>;
}

/**
 * Looks up the host of an untrusted URL once and returns a checked address to connect to. A private address must be
 * allowed, and a forbidden one is always refused. `isForbidden` means that no later attempt can succeed.
 */
export async function pinnedAddress(
  url: URL,
  { allowPrivate, refusePublic = false, resolve }: PinOptions,
): Promise<string | { error: string; isForbidden: boolean }> {
  const host = parseTargetHost(url.hostname);
  if (host === null) return { error: "the host is invalid", isForbidden: true };
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
  if (found.length === 0) return { error: `there is no host named ${host.text}`, isForbidden: false };
  return { error: `the address of ${host.text} is not allowed`, isForbidden: true };
}

/** Returns a lookup function that always yields this address, even if the name resolves to another one by then. */
export function lookupOf(address: string): LookupFunction {
  const family = isIP(address);
  return (_name, options, done) => {
    if (options.all === true) done(null, [{ address, family }]);
    else done(null, address, family);
  };
}

/** Describes a connection error for people. */
export function connectionWords(error: NodeJS.ErrnoException): string {
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: "the connection was refused",
    ECONNRESET: "the connection was reset",
    ENETUNREACH: "there is no route to the host",
    EHOSTUNREACH: "there is no route to the host",
    ABORT_ERR: "the request was cancelled",
  };
  return words[error.code ?? ""] ?? `the connection failed (${error.code ?? "unknown"})`;
}
