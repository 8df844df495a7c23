import { CaissonError } from "../../contract/error.ts";
import { parseShipRemote } from "../../contract/machine-names.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import type { ForgeKind, ShipTarget } from "../../contract/ship.ts";
import type { StartShip } from "../../contract/ship-verbs.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { isBranchName } from "../../workspace/git/ref-name.ts";

/** Forges that are known by their names. */
const known: Readonly<Record<string, ForgeKind>> = { "github.com": "github", "codeberg.org": "gitea", "gitea.com": "gitea" };
const tokenNames: Readonly<Record<ForgeKind, string | null>> = { github: "GITHUB_TOKEN", gitea: "GITEA_TOKEN", git: null };

/** Where a ship goes, of what was asked for and where the work began. Throws `invalid`, `unsupported`. */
export function shipTarget(
  asked: Pick<StartShip, "to" | "forge" | "into" | "token" | "allowPrivate">,
  source: WorkspaceSource,
): ShipTarget {
  const remote = asked.to ?? (source.kind === "git" ? source.url : null);
  if (remote === null)
    throw new CaissonError("invalid", "it is not said where to", {
      hint: "Name the repository: --to https://HOST/OWNER/NAME, or --to /PATH/OF/BARE.git.",
    });
  if (asked.into !== undefined && !isBranchName(asked.into))
    throw new CaissonError("invalid", `${JSON.stringify(asked.into)} cannot be a branch's name`);
  const into = asked.into ?? (source.kind === "git" && asked.to === undefined ? (source.branch ?? null) : null);
  const path = localPath(remote);
  if (path !== null) {
    if (asked.forge !== undefined && asked.forge !== "git") throw new CaissonError("invalid", "a repository on this machine has no forge");
    return { forge: "git", remote: path, into, token: null, allowPrivate: false };
  }
  const url = httpUrl(remote, { allowPrivate: asked.allowPrivate ?? false });
  const forge = asked.forge ?? known[url.hostname];
  if (forge === undefined)
    throw new CaissonError("invalid", `it is not known what kind of forge ${url.host} is`, {
      hint: "Say so: --forge github, gitea (also for Forgejo) or git.",
    });
  const { allowPrivate = false } = asked;
  return { forge, remote: withoutTrailingSlashes(url.href), into, token: asked.token ?? tokenNames[forge], allowPrivate };
}

function localPath(remote: string): string | null {
  const parsed = parseShipRemote(remote);
  if (parsed?.kind !== "folder") return null;
  if (/[\0\n]/.test(parsed.path)) throw new CaissonError("invalid", "the path of the remote has characters that no path has");
  return withoutTrailingSlashes(parsed.path) || "/";
}

function httpUrl(remote: string, { allowPrivate }: { allowPrivate: boolean }): URL {
  if (/^(?:ssh:\/\/|git\+ssh:\/\/|[\w.-]+@[\w.-]+:)/i.test(remote)) {
    const place = /^(?:(?:git\+)?ssh:\/\/)?(?:[^@/]*@)?([\w.-]+)(?::[0-9]+)?[:/](.+)$/i.exec(remote);
    const instead = place === null ? "https://HOST/OWNER/NAME.git" : `https://${place[1]}/${place[2]}`;
    throw new CaissonError("unsupported", "a remote over SSH is not pushed to: a key would have to be given to a program", {
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
      hint: "Use https://; only a remote at a private address can do without, with --allow-private.",
    });
  url.username = "";
  url.password = "";
  url.search = "";
  url.hash = "";
  return url;
}
