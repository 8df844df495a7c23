import { CaissonError } from "../../../contract/error.ts";
import type { RegistryName } from "../../../contract/network.ts";
import type { Packages } from "../packages.ts";
import type { Registry, RegistryOptions } from "../registry.ts";
import { cratesRegistry } from "./crates.ts";
import { debianRegistry } from "./debian.ts";
import { goRegistry } from "./go.ts";
import { npmRegistry } from "./npm.ts";
import { pypiRegistry } from "./pypi.ts";

const known: Record<RegistryName, { make: (options: RegistryOptions) => Registry; domain: string; host: string }> = {
  npm: { make: npmRegistry, domain: "npmjs.org", host: "registry" },
  pypi: { make: pypiRegistry, domain: "org", host: "pypi" },
  debian: { make: debianRegistry, domain: "debian.org", host: "deb" },
  crates: { make: cratesRegistry, domain: "crates.io", host: "index" },
  go: { make: goRegistry, domain: "golang.org", host: "proxy" },
};

/** One of each, whether or not it is served now. Throws `invalid` for an upstream that is not a base URL. */
export function createRegistries(options: {
  upstreams: Partial<Record<RegistryName, string>>;
  origin: string;
  packages: Packages;
}): Registry[] {
  return (Object.keys(known) as RegistryName[]).map((name) => {
    const { make, domain, host } = known[name];
    const upstream = baseUrl(options.upstreams[name] ?? `https://${host}.${domain}/`, name);
    return make({ upstream, origin: options.origin, packages: options.packages });
  });
}

function baseUrl(text: string, name: RegistryName): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.search !== "" ||
    url.hash !== "" ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw new CaissonError("invalid", `the upstream of ${name} is not the address of a registry`, {
      hint: "Give an http or https address without user, query or fragment.",
    });
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}
