import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { memoryFolder } from "../../test/support/memory-folder.ts";
import { socketFetch } from "../client/socket-fetch.ts";
import type { ServedRuns } from "../compose/serving.ts";
import type { LocalVerbs } from "../compose/station.ts";
import { fakeStationParts } from "../compose/testing.ts";
import type { StationConfig } from "../contract/config.ts";
import { LOCAL_OWNER } from "../contract/owner.ts";
import type { StartRunInput } from "../contract/run-verbs.ts";
import type { Scope } from "../contract/token-verbs.ts";
import type { Program } from "../runtimes/fake/program.ts";
import { sandboxOfToken, sandboxToken } from "../sandbox/sandbox-token.ts";
import { createStore } from "../sandbox/store.ts";
import { ownedStation } from "../station/owners/owned-station.ts";
import { boundedSandboxes } from "../station/queue/bounded-sandboxes.ts";
import { queueBounds } from "../station/queue/queue-bounds.ts";
import type { Station } from "../station/station.ts";
import type { ExposureOptions } from "./exposure.ts";
import type { ObserveOptions } from "./observe/observation.ts";
import type { IntakeOptions } from "./overload/request-intake.ts";
import { startServer } from "./server.ts";

interface UseServerOptions {
  programs?: Readonly<Record<string, Program>>;
  /** Whether it puts what becomes of sandboxes into their logs, as a station does. */
  chronicles?: boolean;
  /** Its config.json. */
  config?: object;
  /** What the station may do at once. */
  bounds?: Partial<StationConfig>;
  intake?: IntakeOptions;
  /** Of the port. */
  connectionsMax?: number;
  /** What the server asks instead of the real station, for what is to fail or hang. */
  instead?: (station: Station) => Station;
}

/**
 * A station of the fake runtime that serves, in a folder of its own. `defects` are what it would have told its owner.
 */
export async function openServer(options: UseServerOptions & { defects?: unknown[] } = {}) {
  const { programs = {}, bounds = {}, config = {}, chronicles = false, defects = [], intake = {}, instead = (same) => same } = options;
  const base = await mkdtemp(join(memoryFolder(), "caisson-test-api-"));
  await mkdir(join(base, "config"));
  await writeFile(join(base, "config", "config.json"), JSON.stringify(config));
  const parts = await fakeStationParts(base, { programs, station: bounds });
  const station: LocalVerbs = parts.openStation();
  const runs: ServedRuns = station.serve(queueBounds(parts.local.config.station));
  const store = createStore({ stateDir: join(base, "state") });
  const start = (exposure: Partial<ExposureOptions> = {}, observe: ObserveOptions = {}) =>
    startServer({
      stationFor: (view) =>
        instead(ownedStation({ ...station, sandboxes: boundedSandboxes(station.sandboxes, { queue: runs.queue, store }) }, view)),
      runs,
      authenticate: (token) => station.tokens.authenticate(token),
      authenticateSandbox: (token) => sandboxOfToken(token, { folderOf: store.dir, nowMs: Date.now() }),
      audit: station.audit,
      stateDir: join(base, "state"),
      version: "0",
      settings: "",
      consoleDir: join(base, "console"),
      listenHost: "127.0.0.1",
      port: 0,
      onDefect: (error) => defects.push(error),
      observe,
      intake,
      connectionsMax: options.connectionsMax,
      ...exposure,
    });
  const server = await start();
  const chronicle = chronicles ? await station.chronicle((error) => defects.push(error)) : undefined;
  const close = async () => {
    await server.close();
    await chronicle?.[Symbol.asyncDispose]();
    await station[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  };
  return { base, fake: parts.fake, station, server, start, defects, close };
}

/** The same for each test, really listening. */
export function useServer(options: UseServerOptions = {}) {
  let opened: Awaited<ReturnType<typeof openServer>>;
  const defects: unknown[] = [];
  beforeEach(async () => {
    defects.length = 0;
    opened = await openServer({ ...options, defects });
  });
  afterEach(() => opened.close());
  const station = () => opened.station;
  const server = () => opened.server;
  const base = () => opened.base;
  let count = 0;
  const token = async (scope: Scope, options: { expiresInMs?: number; owner?: string } = {}): Promise<string> => {
    count += 1;
    return (await station().tokens.create({ name: `test-${count}`, scope, ...options })).token;
  };
  /** The token that programs in this sandbox have. */
  const insideToken = (sandbox: string, nowMs = Date.now()): string =>
    sandboxToken(sandbox, { folder: join(base(), "state", "sandboxes", sandbox), nowMs });
  /** A request with a token over TCP, or, without one, by the socket. */
  const ask = async (path: string, init: RequestInit & { as?: string } = {}): Promise<Response> => {
    const { as, ...rest } = init;
    if (as === undefined) {
      const { body, status, headers } = await socketFetch(server().socketPath)(`http://station${path}`, rest);
      return new Response(body, { status, headers });
    }
    return fetch(`${server().status.url}${path}`, { ...rest, headers: { ...rest.headers, authorization: `Bearer ${as}` } });
  };
  const post = (path: string, body: unknown = {}, init: RequestInit & { as?: string } = {}) =>
    ask(path, { ...init, method: "POST", headers: { "content-type": "application/json", ...init.headers }, body: JSON.stringify(body) });
  /** A run of a model that says these words, ended. */
  const endedRun = async (over: Partial<StartRunInput> & { owner?: string } = {}): Promise<string> => {
    const { owner = LOCAL_OWNER, ...request } = over;
    const file = join(base(), "model.yaml");
    await writeFile(file, "turns: [{ say: All done. }]\n");
    const { run } = await station().runs.start({ task: "Say so.", model: `scripted:${file}`, ...request }, { owner });
    await station().runs.wait(run);
    return run;
  };
  const start = (...asked: Parameters<(typeof opened)["start"]>) => opened.start(...asked);
  return { station, server, start, token, insideToken, ask, post, endedRun, base, defects };
}
