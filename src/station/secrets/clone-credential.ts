import type { SecretConfig } from "../../contract/network/network.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { GitCredential } from "../../network/outbound/git-access.ts";
import { fileOfSecret, readToken, tokenRefusal } from "./kept-token.ts";

/** The user name that forges expect with a token. Most accept any other name, too. */
const USERNAME = "x-access-token";
/** The default token names of ships. */
const usualNames = ["GITHUB_TOKEN", "GITEA_TOKEN"];

/**
 * Returns the credential for a clone from the owner's secrets, or null. The secret must allow exactly these requests.
 * Secrets marked for git come first, then those that ships use. Only the machine's own user may send one without TLS.
 */
export async function cloneCredential(
  url: URL,
  { owner, secrets }: { owner: string; secrets: Readonly<Record<string, SecretConfig>> },
): Promise<GitCredential | null> {
  const base = url.href.replace(/[?#].*$/, "").replace(/\/$/, "");
  const requests = [
    { method: "GET", url: new URL(`${base}/info/refs?service=git-upload-pack`) },
    { method: "POST", url: new URL(`${base}/git-upload-pack`) },
  ];
  const allowClear = owner === LOCAL_OWNER;
  const fitting = Object.entries(secrets)
    .flatMap(([name, config]) => {
      const file = fileOfSecret(config);
      // A secret for every host names no host in particular, so we send it only if the request names it.
      const isNamed = config.hosts.every((host) => host !== "*");
      const isRefused = requests.some((request) => tokenRefusal(config, request, { allowClear }) !== null);
      return file === null || !isNamed || isRefused ? [] : [{ name, file, git: config.git }];
    })
    .sort((left, right) => rank(left) - rank(right) || left.name.localeCompare(right.name));
  const [chosen] = fitting;
  return chosen === undefined ? null : { username: chosen.git?.username ?? USERNAME, password: await readToken(chosen.file) };
}

function rank({ name, git }: { name: string; git: SecretConfig["git"] }): number {
  if (git !== undefined) return 0;
  return usualNames.includes(name) ? 1 : 2;
}
