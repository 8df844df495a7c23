import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RequestSpans } from "../api/observe/observer.ts";
import type { ReachedStation, ServerControl } from "../cli/server-control.ts";
import { type Client, connect } from "../client/connect.ts";
import { socketFetch } from "../client/socket-fetch.ts";
import type { StationConfig } from "../contract/config.ts";
import { CaissonError } from "../contract/error.ts";
import { stationFolder } from "../contract/station-note.ts";
import { isErrno } from "../lib/is-errno.ts";
import { isProcessRunning } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { AppendListener } from "../log/observed-log.ts";
import { startDetached } from "./network.ts";
import type { StationAccess } from "./remote.ts";
import type { LocalVerbs } from "./station.ts";

/** How long a station in the background has to listen, and one that was asked to end to do so. */
const START_MS = 30_000;
const END_MS = 30_000;
const LOOK_MS = 20;
const DRAIN_LOOK_MS = 250;
const REASON_BYTES_MAX = 4096;
/** A station that does not answer for so long is asked for a sign of life, and has as long to give one. */
const SILENCE_MS = 3_000;

export interface ServerParts {
  station: LocalVerbs;
  stateDir: string;
  /** Where the built console is. */
  consoleDir: string;
  version: string;
  /** The configuration that it works with, as commands compare it. */
  settings: string;
  /** The one elsewhere that was chosen, if one was. */
  chosen?: { url: string; access: StationAccess };
  /** Begins to keep sandboxes ready, where that was chosen. */
  warm(): Promise<void>;
  /** This program and its first arguments, to be started again in the background. */
  program: readonly [string, ...string[]];
  env: Readonly<Record<string, string | undefined>>;
  metricsWithoutToken: boolean;
  /** Told of every event that this process appends. */
  onAppended(listener: AppendListener): void;
  /** Of requests; null where nobody traces. */
  spans: RequestSpans | null;
  /** What the station may do at once. */
  bounds: StationConfig;
}

/** A station of a state folder that runs already, or is started in the background. */
export function composeBackground(
  parts: Pick<ServerParts, "stateDir" | "program" | "env">,
): Pick<ServerControl, "reach" | "startDetached"> {
  const { stateDir } = parts;
  const { socketPath } = stationFolder(stateDir);
  const reach = async (): Promise<ReachedStation | null> => {
    const status = await withClient(socketPath, (client) => client.status()).catch(absent);
    if (status === null) return null;
    return { status, socketPath, shutDown: (request = {}) => shutDown({ socketPath, pid: status.pid }, request) };
  };
  return {
    reach,
    async startDetached(args) {
      const running = await reach();
      if (running !== null) {
        throw new CaissonError("conflict", `a station of this state folder runs already, as process ${running.status.pid}`, {
          hint: "`caisson down` ends it.",
        });
      }
      const logName = "station.log";
      await using log = await open(join(stateDir, logName), "a+", 0o600);
      const { size } = await log.stat();
      const { ended } = await startDetached({ ...parts, args, logName });
      const isOver = ended.then(() => true);
      const deadline = performance.now() + START_MS;
      for (;;) {
        const reached = await reach();
        if (reached !== null) return reached;
        if (await Promise.race([isOver, delay(LOOK_MS, false)])) {
          const { bytesRead, buffer } = await log.read(Buffer.alloc(REASON_BYTES_MAX), 0, REASON_BYTES_MAX, size);
          throw notStarted(buffer.toString("utf8", 0, bytesRead));
        }
        if (performance.now() > deadline)
          throw new CaissonError("timeout", "the station does not listen yet", { hint: "`caisson status` tells when it does." });
      }
    },
  };
}

/** The address that the station of this state folder reports over its socket; null if no station answers. */
export async function ownStationUrl(stateDir: string): Promise<string | null> {
  try {
    return (await withClient(stationFolder(stateDir).socketPath, (client) => client.status())).url;
  } catch {
    return null;
  }
}

/** The station of this state folder as a server: here, in the background, or where it runs already. */
export function composeServer(parts: ServerParts): ServerControl {
  return {
    ...composeBackground(parts),
    async reachChosen() {
      if (parts.chosen === undefined) return null;
      const { clientAt } = await import("./remote.ts");
      return (await clientAt(parts.chosen.url, parts.chosen.access)).status();
    },
    async createCode(request) {
      if (parts.chosen !== undefined) {
        const { url, access } = parts.chosen;
        const { clientAt } = await import("./remote.ts");
        // The address that the user chose, not the one that the station reports.
        return { url, code: await (await clientAt(url, access)).codes.create(request) };
      }
      const { socketPath } = stationFolder(parts.stateDir);
      const register = async (client: Client) => ({ url: (await client.status()).url, code: await client.codes.create(request) });
      return await withClient(socketPath, register).catch(absent);
    },
    // What only a station needs is not loaded by those who look for one.
    start: async (options) => (await import("./start-server.ts")).startStation(parts, options),
  };
}

/** In its own words, which it wrote for people. */
function notStarted(said: string): CaissonError {
  const lines = said.split("\n");
  const message = lines.find((line) => line.startsWith("caisson: "))?.slice("caisson: ".length);
  const hint = lines.find((line) => line.startsWith("hint: "))?.slice("hint: ".length);
  return new CaissonError("unavailable", message ?? "the station ended before it listened", {
    hint: hint ?? "station.log in the state folder may tell why.",
  });
}

async function shutDown(
  { socketPath, pid }: { socketPath: string; pid: number },
  { onWait, ...request }: NonNullable<Parameters<ReachedStation["shutDown"]>[0]>,
): Promise<void> {
  await withClient(socketPath, (client) => client.shutDown(request));
  if (request.drain === true) await untilDrained(socketPath, onWait);
  const deadline = performance.now() + END_MS;
  while (isProcessRunning(pid)) {
    if (performance.now() > deadline) {
      throw new CaissonError("timeout", `the station ${pid} has not ended yet`, {
        hint: `It was asked to; \`kill -9 ${pid}\` ends it at once.`,
      });
    }
    await delay(LOOK_MS);
  }
}

/** As long as it says that it waits for runs: until it waits no more, or nobody answers. */
async function untilDrained(socketPath: string, onWait?: (runs: number) => Promise<void>): Promise<void> {
  for (let told: number | null = null; ; await delay(DRAIN_LOOK_MS)) {
    const status = await withClient(socketPath, (client) => client.status()).catch(absent);
    if (status === null || status.runs.atWork === 0) return;
    if (status.runs.atWork !== told) await onWait?.(status.runs.atWork);
    told = status.runs.atWork;
  }
}

async function withClient<Result>(socketPath: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const { path, close } = shortSocketPath(socketPath);
  try {
    return await work(connect({ url: "http://station", fetch: socketFetch(path), silenceMs: SILENCE_MS }));
  } finally {
    close();
  }
}

/** Nobody listens, or nobody ever did. */
function absent(error: unknown): null {
  const { isAbsent: isAway, isBroken } = (error instanceof CaissonError && error.code === "unavailable" && error.details) || {};
  const isAbsent = isAway === true || isBroken === true || isErrno(error, "ENOENT");
  if (isAbsent) return null;
  throw error;
}
