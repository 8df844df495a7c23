import { readFileSync } from "node:fs";
import { connect } from "node:net";
import type { StationTarget } from "../cli/station-target.ts";
import type { Config } from "../contract/config.ts";
import { CaissonError } from "../contract/error.ts";
import { PROTOCOL } from "../contract/protocol.ts";
import { readStationNote, stationFolder } from "../contract/station-note.ts";
import { isStopped, processStat } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { Environment } from "./environment.ts";

/** A station that is there takes a connection at once, however busy it is; the kernel does it for it. */
const CONNECT_MS = 1_000;

/** How long a station that is stopped has to go on by itself, as one does that somebody looks into. */
const STOPPED_MS = 1_000;
const STOPPED_LOOK_MS = 100;

/** Variables that decide what a sandbox is, besides those that the configuration has read. */
const decisive = ["DOCKER_HOST", "GIT_CONFIG_GLOBAL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"];

/** What a command and a station must have in common for one to do the other's work. */
export function settingsText(config: Config, { environment, program }: { environment: Environment; program: readonly string[] }): string {
  // By where they lead: a service of the system has no `HOME`, and the same home folder.
  const { home, configDir, variables } = environment;
  // Two builds of one version are the same program by its file.
  return JSON.stringify([program.at(-1), config, home, configDir, decisive.map((name) => variables[name] ?? null)]);
}

/**
 * The station that serves this state folder, where one does and would do what this process would: the same version with
 * the same configuration. Otherwise this process does the work, which is slower and as good. One that was killed left
 * its files; nobody listens there, and the kernel says so at once. Throws `unavailable` for one that is stopped: the
 * kernel takes connections for it all the same, and what it has begun must not be done a second time beside it.
 */
export async function findOwnStation(own: {
  stateDir: string;
  version: string;
  settings: string;
}): Promise<Extract<StationTarget, { kind: "here" | "socket" }>> {
  const { socketPath, notePath } = stationFolder(own.stateDir);
  const note = readStationNote(textOf(notePath));
  if (note === null) return { kind: "here" };
  if (!(await listens(socketPath))) return { kind: "here" };
  const { pid } = note;
  if (note.version !== own.version || note.protocol !== PROTOCOL) {
    return { kind: "here", unused: `the station ${pid} is version ${note.version}, and this is ${own.version}` };
  }
  if (note.settings !== own.settings) return { kind: "here", unused: `the station ${pid} works with another configuration` };
  for (let leftMs = STOPPED_MS; isStopped(processStat(pid)); leftMs -= STOPPED_LOOK_MS) {
    if (leftMs <= 0) throw stationStopped(pid);
    await new Promise((resolve) => setTimeout(resolve, STOPPED_LOOK_MS));
  }
  return { kind: "socket", socketPath, pid };
}

export function stationStopped(pid: number): CaissonError {
  return new CaissonError("unavailable", `the station does not answer: process ${pid} is stopped`, {
    hint: `\`kill -CONT ${pid}\` lets it go on. With --no-station this command does the work itself.`,
  });
}

/** At once: it is short, or not there. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

async function listens(socketPath: string): Promise<boolean> {
  let short: ReturnType<typeof shortSocketPath>;
  try {
    short = shortSocketPath(socketPath);
  } catch {
    return false;
  }
  const connected = Promise.withResolvers<boolean>();
  const socket = connect({ path: short.path })
    .setTimeout(CONNECT_MS)
    .once("connect", () => connected.resolve(true))
    .once("timeout", () => connected.resolve(false))
    .once("error", () => connected.resolve(false));
  try {
    return await connected.promise;
  } finally {
    socket.destroy();
    short.close();
  }
}
