import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * How the tests run the command line: without a station, through a station on the same state folder that it finds by
 * its socket, or through a station at an address with a token. Every test of the command line passes in all three
 * modes; `npm run test:modes` runs the last two. A test of the process that does the work skips itself, with the
 * reason, if a station does it.
 */
export type StationMode = "none" | "socket" | "http";

export const stationMode = modeFrom(process.env.CAISSON_TEST_MODE);
export const isThroughStation = stationMode !== "none";

function modeFrom(text: string | undefined): StationMode {
  if (text === undefined || text === "" || text === "none") return "none";
  if (text === "socket" || text === "http") return text;
  throw new Error(`CAISSON_TEST_MODE must be none, socket or http, not ${text}`);
}

interface RunningStation {
  url: string;
  token: string;
  pid: number;
}

/** The result of the last start on a state folder. */
interface StationStart {
  /** The settings of the start. Any other settings need another station. */
  key: string;
  /** Null if no station can start, which some tests need. */
  station: RunningStation | null;
  place: StationPlace;
}

interface StationPlace {
  /** The program and its first arguments. */
  program: readonly [string, ...string[]];
  home: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Additional variables that a test sets for this command only. */
  own: Readonly<Record<string, string | undefined>>;
  /** Whether no other command runs on this state folder. */
  isIdle: boolean;
}

/** Starts a station for each state folder, before the first command there. */
export function createModeStations(mode: StationMode = stationMode) {
  const starts = new Map<string, StationStart>();
  const run = ({ program: [file, ...first], cwd, env }: Pick<StationPlace, "program" | "cwd" | "env">, args: readonly string[]) =>
    spawnSync(file, [...first, ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  /** The first station of a state folder prints its token only once. */
  const tokens = new Map<string, string>();
  /** Ends the station of a state folder, before the folder is removed. */
  const end = (home: string): void => {
    const last = starts.get(home);
    starts.delete(home);
    if (!last?.station || !existsSync(home)) return;
    const { status, stderr } = run(last.place, ["down"]);
    if (status === 0) return;
    process.kill(last.station.pid, "SIGKILL");
    throw new Error(`the station of ${home} did not end: ${stderr}`);
  };
  return {
    /**
     * Returns the variables with which a command finds the station of its state folder, or none without such a station.
     */
    variablesFor(place: StationPlace): Record<string, string> {
      if (mode === "none") return {};
      const { home } = place;
      const key = keyOf(place);
      const last = starts.get(home);
      if (last === undefined || (last.key !== key && place.isIdle)) {
        // Uses the environment of its start, since another command's may be wrong on purpose. If the configuration is
        // wrong, the station cannot be ended and keeps running.
        const isOver = !last?.station || run(last.place, ["down"]).status === 0;
        const station = isOver ? stationFrom(run(place, ["up", "--detach", "--port", "0", "--json"]), tokens.get(home)) : null;
        if (station !== null) tokens.set(home, station.token);
        if (isOver) starts.set(home, { key, place, station });
      }
      const station = starts.get(home)?.station;
      return mode === "http" && station ? { CAISSON_URL: station.url, CAISSON_TOKEN: station.token } : {};
    },
    end,
    /** Ends all stations. Throws if one does not end. */
    endAll(): void {
      for (const home of [...starts.keys()]) end(home);
    },
  };
}

/** Returns whether this is the folder of a sandbox that a station keeps ready, which has no owner yet. */
export function isKeptReady(folder: string, mode: StationMode = stationMode): boolean {
  if (mode === "none") return false;
  try {
    return readFileSync(join(folder, "sandbox.json"), "utf8").includes('"waiting": true');
  } catch {
    return false;
  }
}

/** A station reads its configuration and its environment only when it starts. */
function keyOf({ home, own }: StationPlace): string {
  const file = join(home, "config.json");
  return JSON.stringify([own, existsSync(file) ? readFileSync(file, "utf8") : null]);
}

/**
 * Returns null if no station can start with this state folder or configuration. Throws on any other failure: commands
 * would do their own work, and the tests would pass without a station.
 */
function stationFrom({ stdout, stderr }: { stdout: string; stderr: string }, tokenBefore: string | undefined): RunningStation | null {
  const answer = answerFrom(stdout);
  if (answer?.error?.code === "invalid") return null;
  const { url, pid, token = tokenBefore } = answer ?? {};
  if (url === undefined || pid === undefined || token === undefined) throw new Error(`no station was started: ${stdout}${stderr}`);
  return { url, pid, token };
}

function answerFrom(stdout: string): (Partial<RunningStation> & { error?: { code: string } }) | null {
  try {
    return JSON.parse(stdout);
  } catch {
    return null;
  }
}
