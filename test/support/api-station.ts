import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { ExposureOptions } from "../../src/api/exposure.ts";
import type { ObserveOptions } from "../../src/api/observe/observation.ts";
import type { IntakeOptions } from "../../src/api/overload/request-intake.ts";
import { startServer } from "../../src/api/server.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { ServedRuns } from "../../src/compose/serving.ts";
import type { LocalVerbs } from "../../src/compose/station.ts";
import { fakeStationParts } from "../../src/compose/testing-compose.ts";
import type { StationConfig } from "../../src/contract/config/config.ts";
import type { StartRunInput } from "../../src/contract/run/run-verbs.ts";
import { LOCAL_OWNER } from "../../src/contract/token/owner.ts";
import type { Scope } from "../../src/contract/token/token-verbs.ts";
import type { Program } from "../../src/runtimes/fake/program.ts";
import { sandboxOfToken, sandboxToken } from "../../src/sandbox/sandbox-token.ts";
import { createStore } from "../../src/sandbox/store.ts";
import { boundedSandboxes } from "../../src/station/queue/bounded-sandboxes.ts";
import { queueBounds } from "../../src/station/queue/queue-bounds.ts";
import { ownedStation } from "../../src/station/tenancy/owned-station.ts";
import type { Station } from "../../src/verbs/station.ts";
import { memoryFolder } from "./memory-folder.ts";

interface UseServerOptions {
  programs?: Readonly<Record<string, Program>>;
  /** Whether the server records the events of sandboxes in their logs, as a station does. */
  chronicles?: boolean;
  /** The content of config.json. */
  config?: object;
  /** The station's limits. */
  bounds?: Partial<StationConfig>;
  intake?: IntakeOptions;
  /** The limit on open connections to the port. */
  connectionsMax?: number;
  /** Replaces the real station, for requests that must fail or hang. */
  instead?: (station: Station) => Station;
}

/** Starts a server with the fake runtime, in a separate folder. `defects` collects the errors that it would report. */
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

/** Starts a listening server for each test. */
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
  /** Returns the token that programs in this sandbox have. */
  const insideToken = (sandbox: string, nowMs = Date.now()): string =>
    sandboxToken(sandbox, { folder: join(base(), "state", "sandboxes", sandbox), nowMs });
  /** Sends a request: over TCP with a token, or over the socket without one. */
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
  /** Runs a scripted model to its end, and returns the run's id. */
  const endedRun = async (over: Partial<StartRunInput> & { owner?: string } = {}): Promise<string> => {
    const { owner = LOCAL_OWNER, ...request } = over;
    const file = join(base(), "model.yaml");
    await writeFile(file, "turns: [{ say: All done. }]\n");
    const { run } = await station().runs.start({ task: "Say so.", model: `scripted:${file}`, ...request }, { owner });
    await station().runs.wait(run);
    return run;
  };
  const start = (...parameters: Parameters<(typeof opened)["start"]>) => opened.start(...parameters);
  return { station, server, start, token, insideToken, ask, post, endedRun, base, defects };
}
