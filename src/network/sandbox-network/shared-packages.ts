import type { LookupFunction } from "node:net";
import { join } from "node:path";
import { classifyAddress, reachOf } from "../address/addresses.ts";
import { resolveByHost } from "../egress/resolve.ts";
import { openPackages, type Packages } from "../mirror/packages.ts";
import type { NetworkHost } from "../network-host.ts";

const shared = new WeakMap<NetworkHost, { packages: Packages; users: number }>();

/**
 * Returns the packages of this process: one cache, and one download per resource at a time, for all its sandboxes.
 * Closed with its last user.
 */
export function usePackages(host: NetworkHost, ca: readonly string[]): { packages: Packages; leave(): Promise<void> } {
  const { mirrorBytesMax } = host.settings;
  let held = shared.get(host);
  if (held === undefined) {
    const cacheDir = join(host.stateDir, "mirror");
    const bytesMax = mirrorBytesMax === undefined ? {} : { bytesMax: mirrorBytesMax };
    held = { packages: openPackages({ cacheDir, ca, lookup: publicLookup(host), ...bytesMax }), users: 0 };
    shared.set(host, held);
  }
  const mine = held;
  mine.users += 1;
  return {
    packages: mine.packages,
    async leave() {
      mine.users -= 1;
      if (mine.users > 0) return;
      shared.delete(host);
      await mine.packages.close();
    },
  };
}

/**
 * A registry may redirect its readers, but not to addresses that only this machine can reach. A registry that the user
 * named may be anywhere.
 */
function publicLookup(host: NetworkHost): LookupFunction {
  const named = new Set(Object.values(host.settings.registries).map((url) => new URL(url).hostname));
  return (name, options, done) => {
    resolveByHost(name).then(
      (addresses) => {
        const usable = named.has(name)
          ? addresses
          : addresses.filter((address) => reachOf(classifyAddress(address, new Set())) === "public");
        const found = usable.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
        const [first] = found;
        if (first === undefined) done(Object.assign(new Error(`${name} has no public address`), { code: "ENOTFOUND" }), "", 0);
        else if (options.all) done(null, found);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, "", 0),
    );
  };
}
