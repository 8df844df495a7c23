import { CaissonError } from "../../contract/error/error.ts";
import { type GitOrigin, gitPorts, parseGitAddress, parseGitPlace } from "../../contract/session/git-address.ts";
import { cleanAddress } from "./address.ts";

/**
 * Checks where a submodule comes from. The repository names the address, so it may lead only to the origin of that
 * repository or to a place that the user named. Otherwise a clone could make the host fetch anything it can reach, with
 * the user's own keys. Throws `denied` with the option that allows the address.
 */
export function checkSubmoduleOrigin(
  submodule: { name: string; address: string },
  options: { source: string; allowed: readonly string[] },
): void {
  const { address } = submodule;
  const origin = parseGitAddress(address);
  const from = parseGitAddress(options.source);
  const quotedAddress = JSON.stringify(cleanAddress(address).slice(0, 200));
  if (origin === null)
    throw new CaissonError("unsafe", `the submodule ${JSON.stringify(submodule.name)} has an ambiguous address: ${quotedAddress}`);
  // Each folder of this machine is a separate place that the user must name.
  if (from !== null && origin.scheme !== "file" && leadsTo(origin, from)) return;
  if (options.allowed.some((text) => leadsTo(origin, parseGitPlace(text)))) return;
  const keys = origin.scheme === "ssh" ? " Your SSH keys are then offered there." : "";
  throw new CaissonError(
    "denied",
    `the submodule ${JSON.stringify(submodule.name)} comes from ${quotedAddress}, which is not the origin of ${cleanAddress(options.source)}`,
    { hint: `Allow it with \`--submodules-from ${placeOf(origin)}\`.${keys}` },
  );
}

function leadsTo(origin: GitOrigin, place: GitOrigin): boolean {
  const sameServer = origin.scheme === place.scheme && origin.host === place.host && origin.port === place.port;
  const sameUser = place.user === null || origin.user === place.user;
  const within = place.folder === origin.folder || origin.folder.startsWith(`${place.folder}/`);
  return sameServer && sameUser && within;
}

/** Formats a place for the option. */
function placeOf({ scheme, host, port, user, folder }: GitOrigin): string {
  if (scheme === "file") return `file://${folder}`;
  const server = `${host}${port === gitPorts[scheme] ? "" : `:${port}`}`;
  return scheme === "https" ? server : `${scheme}://${user ? `${user}@` : ""}${server}`;
}
