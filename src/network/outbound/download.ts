import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { CaissonError } from "../../contract/error/error.ts";
import type { FetchPolicy } from "./fetch-policy.ts";
import { lookupOf, pinnedAddress } from "./pinned-address.ts";

const REDIRECTS_MAX = 5;
/** A download without a byte for this long is given up. */
const SILENCE_MS = 60_000;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface Download {
  url: URL;
  headers: Readonly<Record<string, string>>;
  owner: string;
  policy: FetchPolicy;
  signal: AbortSignal;
}

/**
 * Sends a GET for an owner and returns the answer with its body unread. Each redirect is checked like the first
 * address, and the authorization is only sent to its own origin. Throws `denied` for an address that this owner may not
 * reach, and `unavailable` without further details.
 */
export async function openDownload({ url, headers, owner, policy, signal }: Download): Promise<IncomingMessage> {
  let at = url;
  for (let redirectCount = 0; redirectCount <= REDIRECTS_MAX; redirectCount += 1) {
    if (at.protocol !== "https:") throw notReached(at);
    const address = await pinnedAddress(at, { allowPrivate: policy.allowsPrivate(at.hostname, owner), resolve: policy.resolve });
    if (typeof address !== "string") throw address.isForbidden ? notReached(at) : notFetched(at);
    const { authorization, ...plain } = headers;
    const own = at.origin === url.origin && authorization !== undefined ? { authorization } : {};
    const answer = await get(at, { headers: { ...plain, ...own }, address, policy, signal });
    const { location } = answer.headers;
    if (!redirects.has(answer.statusCode ?? 0) || location === undefined || !URL.canParse(location, at.href)) return answer;
    answer.destroy();
    at = new URL(location, at);
  }
  throw notFetched(at);
}

function get(
  url: URL,
  { headers, address, policy, signal }: Pick<Download, "headers" | "policy" | "signal"> & { address: string },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Missing in Node's types, but accepted by `tls.connect`.
    const trusted = { secureContext: policy.secureContext() };
    const sent = request(url, { headers, agent: false, signal, lookup: lookupOf(address), timeout: SILENCE_MS, ...trusted });
    sent.on("timeout", () => sent.destroy(new Error("silent")));
    sent.on("error", () => reject(notFetched(url)));
    sent.on("response", resolve);
    sent.end();
  });
}

function notReached({ host }: URL): CaissonError {
  return new CaissonError("denied", `the station does not fetch from the address of ${host}`, {
    hint: "Only the machine's user may fetch from private networks and from this machine. Ask the operator to name the host in network.privateFetchHosts.",
  });
}

export function notFetched({ host }: URL): CaissonError {
  return new CaissonError("unavailable", `could not fetch from ${host}`, { hint: "Check the name." });
}
