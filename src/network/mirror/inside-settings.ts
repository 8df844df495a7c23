import type { RegistryName } from "../../contract/network.ts";
import { insidePath } from "../inside/inside-paths.ts";
import { PROXY_PORT } from "../inside/ports.ts";
import type { InsideFile } from "./mirror-options.ts";
import { debianHosts } from "./registries/debian.ts";
import { goHost } from "./registries/go.ts";
import { npmHosts } from "./registries/npm.ts";
import { isCalledByItsName, upstreamUrl } from "./upstream-url.ts";

/** In the folder that is read-only inside. */
const APT_SETTINGS = "/run/caisson/apt.conf";

interface Settings {
  env: Record<string, string>;
  files?: InsideFile[];
}

/**
 * What package programs inside are told. For the public registries that is next to nothing: they ask for the names they
 * know, through the proxy. A registry of the user's own they are told by its address, as they would be outside, so that
 * lock files name the same.
 */
export function insideSettings(
  registries: readonly RegistryName[],
  upstreams: Partial<Record<RegistryName, string>>,
): { env: Record<string, string>; files: InsideFile[] } {
  const settings = registries.map((name) => settingsOf[name](ownBase(name, upstreams[name])));
  return { env: Object.assign({}, ...settings.map(({ env }) => env)), files: settings.flatMap(({ files }) => files ?? []) };
}

/**
 * Null for a public registry, and for one whose address means something else inside; that one stands for the public
 * one.
 */
function ownBase(name: RegistryName, text: string | undefined): URL | null {
  const url = text === undefined ? null : upstreamUrl(text, name);
  return url === null || !isCalledByItsName(url) ? null : url;
}

const settingsOf: Record<RegistryName, (own: URL | null) => Settings> = {
  npm: (own) => ({ env: own === null ? publicNpm : ownNpm(own) }),
  pypi: (own) => ({ env: own === null ? {} : ownPypi(own) }),
  // Cargo's lock file names the public registry whatever it reads from. Versions 1.68 and 1.69 read its index over
  // HTTP only when told to.
  crates: () => ({ env: { CARGO_REGISTRIES_CRATES_IO_PROTOCOL: "sparse" } }),
  // Not `direct` besides it: the servers of the modules' own repositories are not allowed.
  go: (own) => ({ env: { GOPROXY: (own?.href ?? `https://${goHost}`).replace(/\/$/, ""), GOSUMDB: "sum.golang.org" } }),
  debian: () => ({
    env: { APT_CONFIG: APT_SETTINGS },
    files: [{ path: APT_SETTINGS, text: aptSettings() }],
  }),
};

/** Corepack takes yarn from another host unless it is told a registry. */
const publicNpm = { COREPACK_NPM_REGISTRY: `https://${npmHosts.npm}` };

function ownNpm(own: URL): Record<string, string> {
  const withoutSlash = own.href.replace(/\/$/, "");
  return {
    // npm, pnpm, bun and the older yarn read the first two, the newer yarn the next.
    npm_config_registry: own.href,
    NPM_CONFIG_REGISTRY: own.href,
    YARN_NPM_REGISTRY_SERVER: withoutSlash,
    COREPACK_NPM_REGISTRY: withoutSlash,
    ...(own.protocol === "http:" ? { YARN_UNSAFE_HTTP_WHITELIST: own.hostname } : {}),
  };
}

function ownPypi(own: URL): Record<string, string> {
  const index = `${own.href}simple/`;
  const names = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PDM_PYPI_URL"];
  return {
    ...Object.fromEntries(names.map((name) => [name, index])),
    ...(own.protocol === "http:" ? { PIP_TRUSTED_HOST: own.host } : {}),
  };
}

/** Whatever proxy the image was made behind. For sources by https, apt reads no variable that names authorities. */
function aptSettings(): string {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const hosts = debianHosts.flatMap((host) => ["http", "https"].map((scheme) => `Acquire::${scheme}::Proxy::${host} "${proxy}";\n`));
  return `${hosts.join("")}Acquire::https::CaInfo "${insidePath("caBundle")}";\n`;
}
