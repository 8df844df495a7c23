import { CaissonError } from "../../contract/error/error.ts";
import { parseGitAddress } from "../../contract/session/git-address.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { decodedOrNull } from "../../lib/failures.ts";
import { gitConfigEnv } from "../secrets/git-credential.ts";
import type { FetchPolicy } from "./fetch-policy.ts";
import { openGitProxy } from "./git-proxy.ts";
import { pinnedAddress } from "./pinned-address.ts";
import { requestOutbound } from "./request-outbound.ts";

const ASK_TIMEOUT_MS = 15_000;
const ASK_BYTES_MAX = 32 * 1024 * 1024;

/** git's access to one repository for one owner, for one fetch. */
export interface GitAccess extends AsyncDisposable {
  /** Whether git works as the machine's user: with its home folder, keys and logins, and any transport. */
  asUser: boolean;
  /** Variables for git's environment, if it does not work as the machine's user. */
  env: Readonly<Record<string, string>>;
  /** Explains a failed fetch to an owner that must not see git's output. Returns null for the machine's user. */
  explain(): Promise<CaissonError | null>;
}

export interface GitCredential {
  username: string;
  password: string;
}

export interface GitAccessOptions {
  policy: FetchPolicy;
  /** Returns a file with all trusted certificates, or null for git's own. */
  caFile: () => Promise<string | null>;
  /** Finds a credential for requests to this URL among the owner's stored credentials. */
  credentialFor(url: URL, owner: string): Promise<GitCredential | null>;
}

/**
 * Lets the machine's user fetch from anywhere. Other owners fetch over https, through our proxy, from a checked address
 * and with only their own credentials. Throws `denied` for an address that we never fetch for an owner.
 */
export async function openGitAccess(address: string, owner: string, options: GitAccessOptions): Promise<GitAccess> {
  const url = fetchedUrl(address);
  if (owner !== LOCAL_OWNER) checkFetched(address, url);
  const isOwn = url === null || url.username !== "";
  const credential = isOwn ? null : await options.credentialFor(url, owner);
  if (url === null || (owner === LOCAL_OWNER && credential === null))
    return { asUser: true, env: {}, explain: async () => null, async [Symbol.asyncDispose]() {} };
  const { policy } = options;
  const allowPrivate = policy.allowsPrivate(url.hostname, owner);
  const proxy = await openGitProxy({ to: url, allowPrivate, resolve: policy.resolve });
  const caFile = await options.caFile();
  const authorization = credential === null ? null : basic(credential);
  const config: [string, string][] = [
    ["http.proxy", proxy.url],
    ["http.proxyAuthMethod", "basic"],
    ["http.followRedirects", "false"],
    ...(authorization === null ? [] : [[`http.${url.origin}/.extraHeader`, `Authorization: ${authorization}`] as [string, string]]),
    ...(caFile === null ? [] : [["http.sslCAInfo", caFile] as [string, string]]),
  ];
  return {
    asUser: false,
    env: { GIT_ALLOW_PROTOCOL: url.protocol.slice(0, -1), GIT_SSH_COMMAND: "false", ...gitConfigEnv(config) },
    explain: () => explain(url, { refusal: proxy.refusal(), allowPrivate, policy, authorization }),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/** Throws `denied` for an address that we would never fetch for the owner, before anything is created. */
export async function checkGitAddress(address: string, owner: string, policy: FetchPolicy): Promise<void> {
  if (owner === LOCAL_OWNER) return;
  const url = fetchedUrl(address);
  checkFetched(address, url);
  const pinned = await pinnedAddress(url, { allowPrivate: policy.allowsPrivate(url.hostname, owner), resolve: policy.resolve });
  if (typeof pinned !== "string" && pinned.isForbidden) throw notReached(url);
}

function checkFetched(address: string, url: URL | null): asserts url is URL {
  if (url !== null && url.protocol === "https:" && parseGitAddress(address)?.scheme === "https") return;
  throw new CaissonError("denied", "only the machine's user may fetch a repository without HTTPS", {
    hint: "Use an address that starts with https://.",
  });
}

function fetchedUrl(address: string): URL | null {
  const url = /^https?:\/\//i.test(address) && URL.canParse(address) ? new URL(address) : null;
  return url;
}

const basic = ({ username, password }: GitCredential) => `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

/** Reports only the status of the request that we make, because git's output would describe the network. */
async function explain(
  url: URL,
  about: { refusal: string | null; allowPrivate: boolean; policy: FetchPolicy; authorization: string | null },
): Promise<CaissonError> {
  if (about.refusal !== null) return notReached(url);
  const own =
    url.username === ""
      ? null
      : basic({ username: decodedOrNull(url.username) ?? url.username, password: decodedOrNull(url.password) ?? url.password });
  const authorization = about.authorization ?? own;
  const reply = await requestOutbound(
    {
      url: `${url.origin}${url.pathname.replace(/\/$/, "")}/info/refs?service=git-upload-pack`,
      method: "GET",
      headers: { "user-agent": "git/caisson", ...(authorization !== null && { authorization }) },
      allowPrivate: about.allowPrivate,
      timeoutMs: ASK_TIMEOUT_MS,
      answerBytesMax: ASK_BYTES_MAX,
      secureContext: about.policy.secureContext(),
    },
    about.policy.resolve,
  );
  const status = reply.kind === "answered" ? reply.status : 0;
  const { host } = url;
  if (status === 401 || status === 403)
    return new CaissonError("denied", `${host} requires another password for this repository`, {
      hint: `Store one at the station: caisson secret set 'NAME@${url.hostname}${url.port === "" ? "" : `;ports=${url.port}`}'`,
    });
  if (status === 404) return new CaissonError("not_found", `${host} has no such repository`, { hint: "Check the address." });
  if (status >= 300 && status < 400)
    return new CaissonError("denied", `${host} answered with a redirect, which is not followed`, {
      hint: "Use the address that it redirects to.",
    });
  return new CaissonError("unavailable", `the repository could not be fetched from ${host}`, { hint: "Check the address." });
}

function notReached({ host }: URL): CaissonError {
  return new CaissonError("denied", `the station does not fetch from the address of ${host}`, {
    hint: "Only the machine's user may fetch from private networks and from this machine. Ask the operator to name the host in network.privateFetchHosts.",
  });
}
