import { lstat, readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { ask } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const WRONG_TOKENS = 60;
const STREAM_MS_MAX = 5_000;
const FILES_MAX = 2_000;
const FILE_BYTES_MAX = 32 * 1024 * 1024;

/** What becomes of tokens and other secrets. */
export const tokenClaims: StationClaim[] = [
  defineStationClaim<{ refused: number; status: number }>({
    id: "K01",
    title: "Wrong tokens do not lock out a right one",
    group: "tokens",
    tried: `Tried ${WRONG_TOKENS} wrong tokens, then a right one that was never used before, from the same address.`,
    async observe(context) {
      let refused = 0;
      for (let count = 0; count < WRONG_TOKENS; count++) {
        const token = `tok_${"a".repeat(12)}_${String(count)
          .padStart(52, "b")
          .replace(/[0189]/g, "c")}`;
        const { status } = await ask(context, "/v1/status", { token });
        if (status === 401 || status === 429) refused += 1;
      }
      const { token } = await context.station.token({ scope: "read", owner: "carl" });
      return { refused, status: (await ask(context, "/v1/status", { token })).status };
    },
    judge: ({ refused, status }) => [
      ...(refused === WRONG_TOKENS ? [] : [`${WRONG_TOKENS - refused} wrong tokens were taken`]),
      ...(status === 200 ? [] : [`the right one was answered with ${status}`]),
    ],
  }),
  defineStationClaim<{ began: boolean; status: number; endedMs: number | null }>({
    id: "K02",
    title: "A revoked token is dead at once, and so are its streams",
    group: "tokens",
    tried: "Opened a stream of events, revoked its token, and made another call with it.",
    observe: observeRevocation,
    judge: ({ began, status, endedMs }) => [
      ...(began ? [] : ["the stream did not begin"]),
      ...(status === 401 || status === 429 ? [] : [`a call with it was answered with ${status}`]),
      ...(endedMs === null ? [`its stream was open after ${STREAM_MS_MAX} ms`] : []),
    ],
    describe: ({ endedMs }) => `refused at once; its stream ended after ${endedMs} ms`,
  }),
  defineStationClaim<{ files: number; withToken: string[]; withSecret: string[]; open: string[] }>({
    id: "K03",
    title: "No token is in the state folder, no password of an address in the log, and only its owner can read both",
    group: "tokens",
    tried:
      "Sent passwords in addresses of ships, webhooks and repositories, then looked for them and for tokens in every file, and at the modes of all.",
    observe: observeStateFolder,
    judge: ({ files, withToken, withSecret, open }) => [
      ...(files === 0 ? ["no file was seen"] : []),
      ...withToken.map((path) => `${path} has a token in it`),
      ...withSecret.map((path) => `${path} has a password in it`),
      ...open.map((path) => `others can read ${path}`),
    ],
    describe: ({ files }) => `${files} files, none with a token or a password, all private`,
  }),
];

async function observeRevocation(context: StationContext) {
  const { id, token } = await context.station.token({ scope: "read", owner: "dora" });
  const began = performance.now();
  const stream = Promise.withResolvers<number | null>();
  const begun = Promise.withResolvers<boolean>();
  const asked = request(`${context.url}/v1/events`, {
    agent: false,
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
  });
  let revokedAt = began;
  asked.once("error", () => {
    begun.resolve(false);
    stream.resolve(performance.now() - revokedAt);
  });
  asked.once("response", (answer) => {
    begun.resolve(answer.statusCode === 200);
    answer.resume();
    answer.once("close", () => stream.resolve(performance.now() - revokedAt));
  });
  asked.end();
  const hasBegun = await context.within("a stream", begun.promise, STREAM_MS_MAX).catch(() => false);
  revokedAt = performance.now();
  await context.station.revoke(id);
  const { status } = await ask(context, "/v1/status", { token });
  const timer = setTimeout(() => stream.resolve(null), STREAM_MS_MAX);
  const endedMs = await stream.promise;
  clearTimeout(timer);
  asked.destroy();
  return { began: hasBegun, status, endedMs: endedMs === null ? null : Math.round(endedMs) };
}

async function observeStateFolder(context: StationContext) {
  const { ada, bob, station } = context;
  const password = `canary${Math.random().toString(36).slice(2)}`;
  const body = { task: "x", model: "scripted:demo", source: { kind: "git", url: `https://u:${password}@example.com/x.git` } };
  await ask(context, "/v1/runs", { token: ada, body });
  await ask(context, "/v1/ships", { token: ada, body: { of: "nothing", to: `https://u:${password}@example.com/o/r.git`, forge: "git" } });
  await ask(context, "/v1/webhooks", { token: ada, body: { name: "canary", url: `https://u:${password}@example.com/` } });
  const audit = await ask(context, "/v1/audit", { token: (await station.token({ scope: "admin", owner: "local" })).token });
  const found = { files: 0, withToken: [] as string[], withSecret: [] as string[], open: [] as string[] };
  if (audit.text.includes(password)) found.withSecret.push("the audit log");
  const secretOf = (token: string) => token.slice(token.lastIndexOf("_") + 1);
  for (const entry of (await readdir(station.stateDir, { recursive: true, withFileTypes: true })).slice(0, FILES_MAX)) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(station.stateDir.length + 1);
    const stat = await lstat(path).catch(() => null);
    if (stat === null || !stat.isFile()) continue;
    found.files += 1;
    if (name.startsWith("templates/")) continue;
    if ((stat.mode & 0o077) !== 0 && stat.size > 0 && /\.db(-wal|-shm)?$|^(tokens|secrets|keys)\//.test(name)) found.open.push(name);
    if (stat.size > FILE_BYTES_MAX) continue;
    const bytes = await readFile(path).catch(() => Buffer.alloc(0));
    if ([ada, bob].some((token) => bytes.includes(secretOf(token)))) found.withToken.push(name);
    // What has yet to be fetched keeps its address, in a file for its owner alone.
    if (!/^sessions\/[^/]+\/session\.json$/.test(name) && bytes.includes(password)) found.withSecret.push(name);
  }
  if (((await lstat(station.stateDir)).mode & 0o077) !== 0) found.open.push("the state folder");
  return found;
}
