import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RequestSpans } from "../api/observe/observer.ts";
import type { ReachedStation, ServerControl } from "../cli/server-control.ts";
import { type Client, connect } from "../client/connect.ts";
import { socketFetch } from "../client/socket-fetch.ts";
import type { StationConfig } from "../contract/config/config.ts";
import { CaissonError } from "../contract/error/error.ts";
import { stationFolder } from "../contract/station-note.ts";
import { ignore, isErrno } from "../lib/failures.ts";
import { isProcessRunning } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { AppendListener } from "../log/observed-log.ts";
import { startDetached } from "./network.ts";
import type { StationAccess } from "./remote.ts";
import type { LocalVerbs } from "./station.ts";

/** How long a background station may take to start listening, and how long a station may take to end. */
const START_MS = 30_000;
const END_MS = 30_000;
const LOOK_MS = 20;
const DRAIN_LOOK_MS = 250;
const REASON_BYTES_MAX = 4096;
/** A station that does not answer for this long gets a health check, which may take as long again. */
const SILENCE_MS = 3_000;

export interface ServerParts {
  station: LocalVerbs;
  stateDir: string;
  /** The folder of the built console. */
  consoleDir: string;
  version: string;
  /** The station's configuration as text, for comparison with that of commands. */
  settings: string;
  /** The remote station that was chosen, if any. */
  chosen?: { url: string; access: StationAccess };
  /** Starts to keep sandboxes ready, if configured. */
  warm(): Promise<void>;
  /** The command line that starts this program in the background. */
  program: readonly [string, ...string[]];
  env: Readonly<Record<string, string | undefined>>;
  metricsWithoutToken: boolean;
  /** Calls the listener with every event that this process appends. */
  onAppended(listener: AppendListener): void;
  /** Spans for requests; null without tracing. */
  spans: RequestSpans | null;
  /** Limits on what the station does at once. */
  bounds: StationConfig;
}

/** Reaches the running station of a state folder, or starts one in the background. */
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
        throw new CaissonError("conflict", `a station for this state folder is already running as process ${running.status.pid}`, {
          hint: "Stop it with `caisson down`.",
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
          throw new CaissonError("timeout", "the station is not listening yet", { hint: "Check `caisson status` later." });
      }
    },
  };
}

/** Returns the address that this state folder's station reports over its socket; null if no station answers. */
export async function ownStationUrl(stateDir: string): Promise<string | null> {
  const status = await ignore(
    withClient(stationFolder(stateDir).socketPath, (client) => client.status()),
    "no station answers",
  );
  return status?.url ?? null;
}

/** Controls the station of this state folder as a server: in this process, in the background, or already running. */
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
        // Uses the address that the user chose, not the one that the station reports.
        return { url, code: await (await clientAt(url, access)).codes.create(request) };
      }
      const { socketPath } = stationFolder(parts.stateDir);
      const register = async (client: Client) => ({ url: (await client.status()).url, code: await client.codes.create(request) });
      return await withClient(socketPath, register).catch(absent);
    },
    // Commands that only look for a station do not load the code that runs one.
    start: async (options) => (await import("./start-server.ts")).startStation(parts, options),
  };
}

/** Converts the output of the failed station, which it wrote for people, to an error. */
function notStarted(output: string): CaissonError {
  const lines = output.split("\n");
  const message = lines.find((line) => line.startsWith("caisson: "))?.slice("caisson: ".length);
  const hint = lines.find((line) => line.startsWith("hint: "))?.slice("hint: ".length);
  return new CaissonError("unavailable", message ?? "the station ended before it started listening", {
    hint: hint ?? "Check station.log in the state folder.",
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
        hint: `It was asked to end; \`kill -9 ${pid}\` ends it immediately.`,
      });
    }
    await delay(LOOK_MS);
  }
}

/** Waits while the station reports running runs, until all have ended or it no longer answers. */
async function untilDrained(socketPath: string, onWait?: (runs: number) => Promise<void>): Promise<void> {
  for (let reportedCount: number | null = null; ; await delay(DRAIN_LOOK_MS)) {
    const status = await withClient(socketPath, (client) => client.status()).catch(absent);
    if (status === null || status.runs.atWork === 0) return;
    if (status.runs.atWork !== reportedCount) await onWait?.(status.runs.atWork);
    reportedCount = status.runs.atWork;
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

/** Returns null if no process listens on the socket. */
function absent(error: unknown): null {
  const { isAbsent: isAway, isBroken } = (error instanceof CaissonError && error.code === "unavailable" && error.details) || {};
  const isAbsent = isAway === true || isBroken === true || isErrno(error, "ENOENT");
  if (isAbsent) return null;
  throw error;
}
