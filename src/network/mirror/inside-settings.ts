import type { RegistryName } from "../../contract/network.ts";
import type { InsideFile } from "./mirror-options.ts";
import { debianHosts } from "./registries/debian.ts";

/** In the folder that is read-only inside. */
const APT_SETTINGS = "/run/caisson/apt.conf";
/** cargo reads source replacement from files only. */
const CARGO_SETTINGS = "/home/user/.cargo/config.toml";

/** What makes package programs inside use the mirror: variables where they read any, files where they do not. */
export function insideSettings(registries: readonly RegistryName[], origin: string): { env: Record<string, string>; files: InsideFile[] } {
  const settings = registries.map((name) => settingsOf[name](origin));
  return { env: Object.assign({}, ...settings.map(({ env }) => env)), files: settings.flatMap(({ files }) => files ?? []) };
}

const settingsOf: Record<RegistryName, (origin: string) => { env: Record<string, string>; files?: InsideFile[] }> = {
  npm: (origin) => ({
    env: {
      // npm, pnpm, bun and the older yarn read the first two, the newer yarn the next two.
      npm_config_registry: `${origin}/npm/`,
      NPM_CONFIG_REGISTRY: `${origin}/npm/`,
      YARN_NPM_REGISTRY_SERVER: `${origin}/npm`,
      YARN_UNSAFE_HTTP_WHITELIST: new URL(origin).hostname,
      COREPACK_NPM_REGISTRY: `${origin}/npm`,
    },
  }),
  pypi: (origin) => ({
    env: {
      PIP_INDEX_URL: `${origin}/pypi/simple/`,
      UV_DEFAULT_INDEX: `${origin}/pypi/simple/`,
      UV_INDEX_URL: `${origin}/pypi/simple/`,
      PDM_PYPI_URL: `${origin}/pypi/simple/`,
    },
  }),
  crates: (origin) => ({
    env: {},
    files: [
      {
        path: CARGO_SETTINGS,
        text: `[source.crates-io]\nreplace-with = "caisson"\n\n[source.caisson]\nregistry = "sparse+${origin}/crates/"\n`,
      },
    ],
  }),
  go: (origin) => ({ env: { GOPROXY: `${origin}/go`, GOSUMDB: "sum.golang.org" } }),
  debian: (origin) => ({
    env: { APT_CONFIG: APT_SETTINGS },
    // apt asks the mirror as it would ask a proxy, so the sources of an image stay as they are.
    files: [{ path: APT_SETTINGS, text: debianHosts.map((host) => `Acquire::http::Proxy::${host} "${origin}";\n`).join("") }],
  }),
};
