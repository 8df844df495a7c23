import { readFileSync } from "node:fs";
import { connect } from "node:net";
import type { StationTarget } from "../cli/station-target.ts";
import type { Config } from "../contract/config/config.ts";
import { CaissonError } from "../contract/error/error.ts";
import { PROTOCOL } from "../contract/protocol.ts";
import { readStationNote, stationFolder } from "../contract/station-note.ts";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import { isStopped, processStat } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { Environment } from "./environment.ts";

/**
 * A running station accepts a connection within this time even when it is busy, because the kernel does the accepting.
 */
const CONNECT_MS = 1_000;

/** How long to wait for a stopped station to continue, as one under a debugger may. */
const STOPPED_MS = 1_000;
const STOPPED_LOOK_MS = 100;

/** Variables that affect sandboxes, in addition to those that the configuration reads. */
const decisive = ["DOCKER_HOST", "GIT_CONFIG_GLOBAL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"];

/** Serializes the settings that must match before a station may do a command's work. */
export function settingsText(config: Config, { environment, program }: { environment: Environment; program: readonly string[] }): string {
  // Compares resolved folders: a system service may have no `HOME` but the same home folder.
  const { home, configDir, variables } = environment;
  // Identifies the program by its file: two builds of the same version are different programs.
  return JSON.stringify([program.at(-1), config, home, configDir, decisive.map((name) => variables[name] ?? null)]);
}

/**
 * Finds the station that serves this state folder, if it would do the same as this process: same version, same
 * configuration. Otherwise this process does the work itself, which is slower but equivalent. A killed station leaves
 * its files behind, but the kernel refuses the connection immediately. Throws `unavailable` if the station is stopped:
 * the kernel still accepts connections for it, and its unfinished work must not be done twice.
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
    return { kind: "here", unused: `the station ${pid} has version ${note.version}, but this program has ${own.version}` };
  }
  if (note.settings !== own.settings) return { kind: "here", unused: `the station ${pid} uses another configuration` };
  for (let leftMs = STOPPED_MS; isStopped(processStat(pid)); leftMs -= STOPPED_LOOK_MS) {
    if (leftMs <= 0) throw stationStopped(pid);
    await new Promise((resolve) => setTimeout(resolve, STOPPED_LOOK_MS));
  }
  return { kind: "socket", socketPath, pid };
}

export function stationStopped(pid: number): CaissonError {
  return new CaissonError("unavailable", `the station does not answer: process ${pid} is stopped`, {
    hint: `Continue it with \`kill -CONT ${pid}\`, or use --no-station to work in this process.`,
  });
}

/** Reads synchronously: the file is short, or does not exist. */
function textOf(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "utf8"), UNREACHABLE, "");
}

async function listens(socketPath: string): Promise<boolean> {
  const short = ifErrnoSync(() => shortSocketPath(socketPath), UNREACHABLE, null);
  if (short === null) return false;
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
