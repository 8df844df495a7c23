import { setTimeout as delay } from "node:timers/promises";
import { ask } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const GUESSES = 60;
/** The station has this machine's clock, so a short margin is enough. */
const AFTER_MS = 100;
const OWN_PAGE = { "sec-fetch-site": "same-origin" };

interface Seen {
  /** The status of exchanges by pages elsewhere, by the origin they claim. */
  crossSite: Record<string, number>;
  /** The status of a different call with the code as its token. */
  asToken: number;
  first: number;
  second: number;
  refusedGuesses: number;
  expired: number;
  /** How many tokens were created. */
  tokensMade: number;
}

const isRefused = (status: number) => status === 401 || status === 429;

/** Attacks on the codes that sign in a browser. */
export const codeClaims: StationClaim[] = [
  defineStationClaim<Seen>({
    id: "K04",
    title: "A sign-in code yields one token, within a minute, and only to a page of the station",
    group: "tokens",
    tried: `Exchanged a code as a page elsewhere would, used it as a token, exchanged it twice, guessed ${GUESSES} others, and exchanged an expired one.`,
    observe: observeCodes,
    judge: ({ crossSite, asToken, first, second, refusedGuesses, expired, tokensMade }) => [
      ...(Object.keys(crossSite).length === 0 ? ["no exchange from elsewhere was tried"] : []),
      ...Object.entries(crossSite).flatMap(([what, status]) => (status === 403 ? [] : [`${what}: ${status}`])),
      ...(isRefused(asToken) ? [] : [`a different call with it was answered with ${asToken}`]),
      ...(first === 201 ? [] : [`the first exchange was answered with ${first}`]),
      ...(isRefused(second) ? [] : [`the second exchange was answered with ${second}`]),
      ...(refusedGuesses === GUESSES ? [] : [`${GUESSES - refusedGuesses} guesses were accepted`]),
      ...(isRefused(expired) ? [] : [`an expired code was answered with ${expired}`]),
      ...(tokensMade === 1 ? [] : [`${tokensMade} tokens were created instead of one`]),
    ],
    describe: () => `exchanged once; rejected the second time, from other sites, as a token, for ${GUESSES} guesses, and after its minute`,
  }),
];

async function observeCodes(context: StationContext): Promise<Seen> {
  const { station, url, oldCode } = context;
  const before = (await station.tokenNames()).length;
  const { code } = await station.code();
  const exchange = async (candidate: string, headers: Readonly<Record<string, string>>) =>
    (await ask(context, "/v1/codes/exchange", { method: "POST", token: candidate, headers })).status;
  const crossSite = {
    "another origin": await exchange(code, { origin: "https://evil.example" }),
    "no origin": await exchange(code, { origin: "null" }),
    "another site": await exchange(code, { origin: url, "sec-fetch-site": "cross-site" }),
    "a preview on this machine": await exchange(code, { origin: "http://pv.localhost:1", "sec-fetch-site": "same-site" }),
  };
  const asToken = (await ask(context, "/v1/runs", { token: code })).status;
  const [first, second] = [await exchange(code, OWN_PAGE), await exchange(code, OWN_PAGE)];
  let refusedGuesses = 0;
  for (let count = 0; count < GUESSES; count++) {
    const letters = String(count)
      .padStart(32, "a")
      .replace(/[0189]/g, "b");
    if (isRefused(await exchange(`code_${letters}`, OWN_PAGE))) refusedGuesses += 1;
  }
  await delay(Math.max(0, Date.parse(oldCode.expiresAt) + AFTER_MS - Date.now()));
  const expired = await exchange(oldCode.code, OWN_PAGE);
  return { crossSite, asToken, first, second, refusedGuesses, expired, tokensMade: (await station.tokenNames()).length - before };
}
