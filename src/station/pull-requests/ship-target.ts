import { CaissonError } from "../../contract/error/error.ts";
import { parseShipRemote } from "../../contract/machine/machine-names.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import type { ForgeKind, ShipTarget } from "../../contract/ship/ship.ts";
import type { StartShip } from "../../contract/ship/ship-verbs.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { isBranchName } from "../../workspace/git/ref-name.ts";

/** The forges of well-known hosts. */
const known: ReadonlyMap<string, ForgeKind> = new Map([
  ["github.com", "github"],
  ["codeberg.org", "gitea"],
  ["gitea.com", "gitea"],
]);
const tokenNames: Readonly<Record<ForgeKind, string | null>> = { github: "GITHUB_TOKEN", gitea: "GITEA_TOKEN", git: null };

/** Returns where a ship goes, from the request and the source of the work. Throws `invalid`, `unsupported`. */
export function shipTarget(
  request: Pick<StartShip, "to" | "forge" | "into" | "token" | "allowPrivate">,
  source: WorkspaceSource,
): ShipTarget {
  const remote = request.to ?? (source.kind === "git" ? source.url : null);
  if (remote === null)
    throw new CaissonError("invalid", "there is no remote to ship to", {
      hint: "Name the repository: --to https://HOST/OWNER/NAME, or --to /PATH/OF/BARE.git.",
    });
  if (request.into !== undefined && !isBranchName(request.into))
    throw new CaissonError("invalid", `${JSON.stringify(request.into)} is not a valid branch name`);
  const into = request.into ?? (source.kind === "git" && request.to === undefined ? (source.branch ?? null) : null);
  const path = localPath(remote);
  if (path !== null) {
    if (request.forge !== undefined && request.forge !== "git")
      throw new CaissonError("invalid", "a repository on this machine has no forge");
    return { forge: "git", remote: path, into, token: null, allowPrivate: false };
  }
  const url = httpUrl(remote, { allowPrivate: request.allowPrivate ?? false });
  const forge = request.forge ?? known.get(url.hostname);
  if (forge === undefined)
    throw new CaissonError("invalid", `the forge at ${url.host} is of unknown kind`, {
      hint: "Name it: --forge github, gitea (for Forgejo, too) or git.",
    });
  const { allowPrivate = false } = request;
  return { forge, remote: withoutTrailingSlashes(url.href), into, token: request.token ?? tokenNames[forge], allowPrivate };
}

function localPath(remote: string): string | null {
  const parsed = parseShipRemote(remote);
  if (parsed?.kind !== "folder") return null;
  if (/[\0\n]/.test(parsed.path)) throw new CaissonError("invalid", "the path of the remote contains invalid characters");
  return withoutTrailingSlashes(parsed.path) || "/";
}

function httpUrl(remote: string, { allowPrivate }: { allowPrivate: boolean }): URL {
  if (/^(?:ssh:\/\/|git\+ssh:\/\/|[\w.-]+@[\w.-]+:)/i.test(remote)) {
    const place = /^(?:(?:git\+)?ssh:\/\/)?(?:[^@/]*@)?([\w.-]+)(?::[0-9]+)?[:/](.+)$/i.exec(remote);
    const instead = place === null ? "https://HOST/OWNER/NAME.git" : `https://${place[1]}/${place[2]}`;
    throw new CaissonError("unsupported", "pushing over SSH is not supported: it would hand your key to a program", {
      hint: `Use HTTPS with a token: --to ${instead}`,
    });
  }
  const url = URL.canParse(remote) ? new URL(remote) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw new CaissonError("invalid", `${JSON.stringify(remote.replace(/\/\/[^@/]*@/, "//").slice(0, 200))} is not a remote to ship to`, {
      hint: "Use https://…, or the absolute path of a bare repository on this machine.",
    });
  if (url.protocol === "http:" && !allowPrivate)
    throw new CaissonError("invalid", `${url.host} would be reached without TLS`, {
      hint: "Use https://. To ship to a private address without TLS, add --allow-private.",
    });
  url.username = "";
  url.password = "";
  url.search = "";
  url.hash = "";
  return url;
}
