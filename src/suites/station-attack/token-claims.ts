import { lstat, readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";
import { ask } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const WRONG_TOKENS = 60;
const STREAM_MS_MAX = 5_000;
const FILES_MAX = 2_000;
const FILE_BYTES_MAX = 32 * 1024 * 1024;

/** Attacks on tokens and other secrets. */
export const tokenClaims: StationClaim[] = [
  defineStationClaim<{ refused: number; status: number }>({
    id: "K01",
    title: "Wrong tokens do not lock out a valid one",
    group: "tokens",
    tried: `Tried ${WRONG_TOKENS} wrong tokens, then a valid one that was never used before, from the same address.`,
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
      ...(refused === WRONG_TOKENS ? [] : [`${WRONG_TOKENS - refused} wrong tokens were accepted`]),
      ...(status === 200 ? [] : [`the valid one was answered with ${status}`]),
    ],
  }),
  defineStationClaim<{ began: boolean; status: number; endedMs: number | null }>({
    id: "K02",
    title: "A revoked token and its streams end immediately",
    group: "tokens",
    tried: "Opened an event stream, revoked its token, and made another call with it.",
    observe: observeRevocation,
    judge: ({ began, status, endedMs }) => [
      ...(began ? [] : ["the stream did not start"]),
      ...(status === 401 || status === 429 ? [] : [`a call with it was answered with ${status}`]),
      ...(endedMs === null ? [`its stream was still open after ${STREAM_MS_MAX} ms`] : []),
    ],
    describe: ({ endedMs }) => `rejected immediately; its stream ended after ${endedMs} ms`,
  }),
  defineStationClaim<{ files: number; withToken: string[]; withSecret: string[]; open: string[] }>({
    id: "K03",
    title: "The state folder contains no tokens, the log no URL passwords, and both are private",
    group: "tokens",
    tried:
      "Sent passwords in URLs of ships, webhooks and repositories, then searched every file for them and for tokens, and checked all file modes.",
    observe: observeStateFolder,
    judge: ({ files, withToken, withSecret, open }) => [
      ...(files === 0 ? ["no file was seen"] : []),
      ...withToken.map((path) => `${path} contains a token`),
      ...withSecret.map((path) => `${path} contains a password`),
      ...open.map((path) => `others can read ${path}`),
    ],
    describe: ({ files }) => `${files} files, none with a token or a password, all private`,
  }),
];

async function observeRevocation(context: StationContext) {
  const { id, token } = await context.station.token({ scope: "read", owner: "dora" });
  const began = performance.now();
  const stream = Promise.withResolvers<number | null>();
  const start = Promise.withResolvers<boolean>();
  const clientRequest = request(`${context.url}/v1/events`, {
    agent: false,
    headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
  });
  let revokedAt = began;
  clientRequest.once("error", () => {
    start.resolve(false);
    stream.resolve(performance.now() - revokedAt);
  });
  clientRequest.once("response", (answer) => {
    start.resolve(answer.statusCode === 200);
    answer.resume();
    answer.once("close", () => stream.resolve(performance.now() - revokedAt));
  });
  clientRequest.end();
  const hasBegun =
    (await ignore(context.within("a stream", start.promise, STREAM_MS_MAX), "a stream that does not start is a finding")) ?? false;
  revokedAt = performance.now();
  await context.station.revoke(id);
  const { status } = await ask(context, "/v1/status", { token });
  const timer = setTimeout(() => stream.resolve(null), STREAM_MS_MAX);
  const endedMs = await stream.promise;
  clearTimeout(timer);
  clientRequest.destroy();
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
  for (const path of await pathsBelow(station.stateDir, FILES_MAX)) {
    const name = path.slice(station.stateDir.length + 1);
    const stat = await ifErrno(lstat(path), ABSENT, null);
    if (stat === null || !stat.isFile()) continue;
    found.files += 1;
    if (name.startsWith("templates/")) continue;
    if ((stat.mode & 0o077) !== 0 && stat.size > 0 && /\.db(-wal|-shm)?$|^(tokens|secrets|keys)\//.test(name)) found.open.push(name);
    if (stat.size > FILE_BYTES_MAX) continue;
    const bytes = await ifErrno(readFile(path), ABSENT, Buffer.alloc(0));
    if ([ada, bob].some((token) => bytes.includes(secretOf(token)))) found.withToken.push(name);
    // A pending fetch keeps its URL in a file that only its owner can read.
    if (!/^sessions\/[^/]+\/session\.json$/.test(name) && bytes.includes(password)) found.withSecret.push(name);
  }
  if (((await lstat(station.stateDir)).mode & 0o077) !== 0) found.open.push("the state folder");
  return found;
}

/** Lists everything in a folder while the station works in it, so folders may disappear meanwhile. */
async function pathsBelow(folder: string, pathsMax: number): Promise<string[]> {
  const paths: string[] = [];
  const pending = [folder];
  for (let at = pending.pop(); at !== undefined && paths.length < pathsMax; at = pending.pop())
    for (const entry of await ifErrno(readdir(at, { withFileTypes: true }), ABSENT, [])) {
      paths.push(join(at, entry.name));
      if (entry.isDirectory()) pending.push(join(at, entry.name));
    }
  return paths.slice(0, pathsMax);
}
