import { CaissonError } from "../../contract/error.ts";
import { type GitOrigin, gitPorts, parseGitAddress, parseGitPlace } from "../../contract/git-address.ts";
import { cleanAddress } from "./address.ts";

/**
 * A submodule's address is data of a repository: it may lead to where that repository came from, or to a place the user
 * named, and nowhere else. Otherwise a clone could have the host fetch anything it can reach, with the user's own keys.
 * Throws `denied` with the option that allows it.
 */
export function checkSubmoduleOrigin(
  submodule: { name: string; address: string },
  options: { source: string; allowed: readonly string[] },
): void {
  const { address } = submodule;
  const origin = parseGitAddress(address);
  const from = parseGitAddress(options.source);
  const shown = JSON.stringify(cleanAddress(address).slice(0, 200));
  if (origin === null)
    throw new CaissonError("unsafe", `the submodule ${JSON.stringify(submodule.name)} has an address that is not clear: ${shown}`);
  // Folders of this machine are not one place: each is named.
  if (from !== null && origin.scheme !== "file" && leadsTo(origin, from)) return;
  if (options.allowed.some((text) => leadsTo(origin, parseGitPlace(text)))) return;
  const keys = origin.scheme === "ssh" ? " Your SSH keys are offered there then." : "";
  throw new CaissonError(
    "denied",
    `the submodule ${JSON.stringify(submodule.name)} comes from ${shown}, which is not where ${cleanAddress(options.source)} came from`,
    { hint: `\`--submodules-from ${placeOf(origin)}\` allows it.${keys}` },
  );
}

function leadsTo(origin: GitOrigin, place: GitOrigin): boolean {
  const sameServer = origin.scheme === place.scheme && origin.host === place.host && origin.port === place.port;
  const sameUser = place.user === null || origin.user === place.user;
  const within = place.folder === origin.folder || origin.folder.startsWith(`${place.folder}/`);
  return sameServer && sameUser && within;
}

/** As it is written for the option. */
function placeOf({ scheme, host, port, user, folder }: GitOrigin): string {
  if (scheme === "file") return `file://${folder}`;
  const server = `${host}${port === gitPorts[scheme] ? "" : `:${port}`}`;
  return scheme === "https" ? server : `${scheme}://${user ? `${user}@` : ""}${server}`;
}
