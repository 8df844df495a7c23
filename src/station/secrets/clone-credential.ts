import type { SecretSpec } from "../../contract/network.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { GitCredential } from "../../network/outbound/git-access.ts";
import { fileOfSecret, readToken, tokenRefusal } from "./kept-token.ts";

/** As forges take a token; any other name will do for most. */
const USERNAME = "x-access-token";
/** As ships name them. */
const usualNames = ["GITHUB_TOKEN", "GITEA_TOKEN"];

/**
 * The password for a clone, of the secrets that an owner may use: one for exactly these requests, those that say that
 * they are git's first, then those that ships use. Null when there is none. Without TLS only for the machine's user.
 */
export async function cloneCredential(
  url: URL,
  { owner, secrets }: { owner: string; secrets: Readonly<Record<string, SecretSpec>> },
): Promise<GitCredential | null> {
  const base = url.href.replace(/[?#].*$/, "").replace(/\/$/, "");
  const requests = [
    { method: "GET", url: new URL(`${base}/info/refs?service=git-upload-pack`) },
    { method: "POST", url: new URL(`${base}/git-upload-pack`) },
  ];
  const allowClear = owner === LOCAL_OWNER;
  const fitting = Object.entries(secrets)
    .flatMap(([name, spec]) => {
      const file = fileOfSecret(spec);
      // Every host is no host in particular: such a secret is not sent unless it is named.
      const isNamed = spec.hosts.every((host) => host !== "*");
      const isRefused = requests.some((request) => tokenRefusal(spec, request, { allowClear }) !== null);
      return file === null || !isNamed || isRefused ? [] : [{ name, file, git: spec.git }];
    })
    .sort((left, right) => rank(left) - rank(right) || left.name.localeCompare(right.name));
  const [chosen] = fitting;
  return chosen === undefined ? null : { username: chosen.git?.username ?? USERNAME, password: await readToken(chosen.file) };
}

function rank({ name, git }: { name: string; git: SecretSpec["git"] }): number {
  if (git !== undefined) return 0;
  return usualNames.includes(name) ? 1 : 2;
}
