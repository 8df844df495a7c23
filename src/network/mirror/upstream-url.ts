import { CaissonError } from "../../contract/error/error.ts";
import type { RegistryName } from "../../contract/network/network.ts";

/** Parses the base URL of a registry, and adds a trailing slash. Throws `invalid` for anything else. */
export function upstreamUrl(text: string, name: RegistryName): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.search !== "" ||
    url.hash !== "" ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw new CaissonError("invalid", `the upstream of ${name} is not the URL of a registry`, {
      hint: "Use an http or https URL without user, query or fragment.",
    });
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/**
 * Checks whether programs inside can use the registry's own address. Inside, a loopback address means the sandbox
 * itself.
 */
export function isCalledByItsName({ hostname }: URL): boolean {
  return !/^(?:(?:.+\.)?localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f.*\])$/.test(hostname);
}

export function portOf(url: URL): number {
  return Number(url.port || (url.protocol === "https:" ? 443 : 80));
}
