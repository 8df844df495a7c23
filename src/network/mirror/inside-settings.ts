import type { RegistryName } from "../../contract/network/network.ts";
import { insidePath } from "../sandbox-setup/inside-paths.ts";
import { PROXY_PORT } from "../sandbox-setup/ports.ts";
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
 * Returns the settings of package programs inside. Public registries need almost none, because programs use their
 * public names through the proxy. A private registry is configured by its own address, as outside, so that lock files
 * name the same address.
 */
export function insideSettings(
  registries: readonly RegistryName[],
  upstreams: Partial<Record<RegistryName, string>>,
): { env: Record<string, string>; files: InsideFile[] } {
  const settings = registries.map((name) => settingsOf[name](ownBase(name, upstreams[name])));
  return { env: Object.assign({}, ...settings.map(({ env }) => env)), files: settings.flatMap(({ files }) => files ?? []) };
}

/**
 * Returns null for a public registry. Also returns null for a registry whose address means something else inside: it
 * then replaces the public registry.
 */
function ownBase(name: RegistryName, text: string | undefined): URL | null {
  const url = text === undefined ? null : upstreamUrl(text, name);
  return url === null || !isCalledByItsName(url) ? null : url;
}

const settingsOf: Record<RegistryName, (own: URL | null) => Settings> = {
  npm: (own) => ({ env: own === null ? publicNpm : ownNpm(own) }),
  pypi: (own) => ({ env: own === null ? {} : ownPypi(own) }),
  // Cargo's lock file always names the public registry, even if Cargo reads from another one. Versions 1.68 and 1.69
  // read the index over HTTP only with this setting.
  crates: () => ({ env: { CARGO_REGISTRIES_CRATES_IO_PROTOCOL: "sparse" } }),
  // Without `direct`, because the servers of the modules' own repositories are not allowed.
  go: (own) => ({ env: { GOPROXY: (own?.href ?? `https://${goHost}`).replace(/\/$/, ""), GOSUMDB: "sum.golang.org" } }),
  debian: () => ({
    env: { APT_CONFIG: APT_SETTINGS },
    files: [{ path: APT_SETTINGS, text: aptSettings() }],
  }),
};

/** Corepack downloads yarn from another host unless a registry is configured. */
const publicNpm = { COREPACK_NPM_REGISTRY: `https://${npmHosts.npm}` };

function ownNpm(own: URL): Record<string, string> {
  const withoutSlash = own.href.replace(/\/$/, "");
  return {
    // npm, pnpm, bun and the older yarn read the first two, the newer yarn reads the next.
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

/** Overrides any proxy that the image was built with. apt reads no variable for the authorities of https sources. */
function aptSettings(): string {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const hosts = debianHosts.flatMap((host) => ["http", "https"].map((scheme) => `Acquire::${scheme}::Proxy::${host} "${proxy}";\n`));
  return `${hosts.join("")}Acquire::https::CaInfo "${insidePath("caBundle")}";\n`;
}
