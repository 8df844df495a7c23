import { setTimeout as delay } from "node:timers/promises";
import { ask } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const GUESSES = 60;
/** The station's clock is this machine's; a moment more than none. */
const AFTER_MS = 100;
const OWN_PAGE = { "sec-fetch-site": "same-origin" };

interface Seen {
  /** Of exchanges as a page elsewhere makes them, by what they pretend. */
  crossSite: Record<string, number>;
  /** Of another call with the code. */
  asToken: number;
  first: number;
  second: number;
  refusedGuesses: number;
  expired: number;
  /** How many tokens there are more than before. */
  tokensMade: number;
}

const isRefused = (status: number) => status === 401 || status === 429;

/** What becomes of the codes that sign a browser in. */
export const codeClaims: StationClaim[] = [
  defineStationClaim<Seen>({
    id: "K04",
    title: "A sign-in code gives one token, once, within a minute, to a page of the station",
    group: "tokens",
    tried: `Exchanged a code as pages elsewhere would, used it as a token, exchanged it twice, guessed ${GUESSES} others, and exchanged one that had expired.`,
    observe: observeCodes,
    judge: ({ crossSite, asToken, first, second, refusedGuesses, expired, tokensMade }) => [
      ...(Object.keys(crossSite).length === 0 ? ["no exchange from elsewhere was tried"] : []),
      ...Object.entries(crossSite).flatMap(([what, status]) => (status === 403 ? [] : [`${what}: ${status}`])),
      ...(isRefused(asToken) ? [] : [`another call with it was answered with ${asToken}`]),
      ...(first === 201 ? [] : [`the first exchange was answered with ${first}`]),
      ...(isRefused(second) ? [] : [`the second exchange was answered with ${second}`]),
      ...(refusedGuesses === GUESSES ? [] : [`${GUESSES - refusedGuesses} guesses were taken`]),
      ...(isRefused(expired) ? [] : [`one that had expired was answered with ${expired}`]),
      ...(tokensMade === 1 ? [] : [`${tokensMade} tokens were created instead of one`]),
    ],
    describe: () => `exchanged once; refused again, to other sites, as a token, ${GUESSES} guesses, and after its minute`,
  }),
];

async function observeCodes(context: StationContext): Promise<Seen> {
  const { station, url, oldCode } = context;
  const before = (await station.tokenNames()).length;
  const { code } = await station.code();
  const exchange = async (given: string, headers: Readonly<Record<string, string>>) =>
    (await ask(context, "/v1/codes/exchange", { method: "POST", token: given, headers })).status;
  const crossSite = {
    "another origin": await exchange(code, { origin: "https://evil.example" }),
    "no origin": await exchange(code, { origin: "null" }),
    "another site": await exchange(code, { origin: url, "sec-fetch-site": "cross-site" }),
    "a preview of this machine": await exchange(code, { origin: "http://pv.localhost:1", "sec-fetch-site": "same-site" }),
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
