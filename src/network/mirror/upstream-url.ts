import { CaissonError } from "../../contract/error.ts";
import type { RegistryName } from "../../contract/network.ts";

/** The base URL of a registry; ends with a slash. Throws `invalid` for anything else. */
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
    throw new CaissonError("invalid", `the upstream of ${name} is not the address of a registry`, {
      hint: "Give an http or https address without user, query or fragment.",
    });
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Whether programs inside can call it by its own address: loopback is the sandbox's own there. */
export function isCalledByItsName({ hostname }: URL): boolean {
  return !/^(?:(?:.+\.)?localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f.*\])$/.test(hostname);
}

export function portOf(url: URL): number {
  return Number(url.port || (url.protocol === "https:" ? 443 : 80));
}
