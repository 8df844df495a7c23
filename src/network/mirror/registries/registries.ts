import type { RegistryName } from "../../../contract/network/network.ts";
import type { Packages } from "../packages.ts";
import type { Registry, RegistryOptions } from "../registry.ts";
import { upstreamUrl } from "../upstream-url.ts";
import { cratesHosts, cratesRegistry } from "./crates.ts";
import { debianHost, debianRegistry } from "./debian.ts";
import { goHost, goRegistry } from "./go.ts";
import { npmHosts, npmRegistry } from "./npm.ts";
import { pypiHosts, pypiRegistry } from "./pypi.ts";

const known: Record<RegistryName, { make: (options: RegistryOptions) => Registry; host: string }> = {
  npm: { make: npmRegistry, host: npmHosts.npm },
  pypi: { make: pypiRegistry, host: pypiHosts.index },
  debian: { make: debianRegistry, host: debianHost },
  crates: { make: cratesRegistry, host: cratesHosts.index },
  go: { make: goRegistry, host: goHost },
};

/**
 * Creates one of each registry, whether or not it is currently served. Throws `invalid` for an upstream that is not a
 * base URL.
 */
export function createRegistries(options: { upstreams: Partial<Record<RegistryName, string>>; packages: Packages }): Registry[] {
  return (Object.keys(known) as RegistryName[]).map((name) => {
    const { make, host } = known[name];
    return make({ upstream: upstreamUrl(options.upstreams[name] ?? `https://${host}/`, name), packages: options.packages });
  });
}
