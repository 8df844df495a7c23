import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * How the command line's tests work: by themselves, through a station on their state folder that they find by its
 * socket, or through one that they are told the address and a token of. Every test of the command line holds in all
 * three; `npm run test:modes` tries the last two.
 */
export type StationMode = "none" | "socket" | "http";

export const stationMode = modeFrom(process.env.CAISSON_TEST_MODE);

function modeFrom(text: string | undefined): StationMode {
  if (text === undefined || text === "" || text === "none") return "none";
  if (text === "socket" || text === "http") return text;
  throw new Error(`CAISSON_TEST_MODE is none, socket or http, not ${text}`);
}

interface RunningStation {
  url: string;
  token: string;
  pid: number;
}

/** What became of the last start on a state folder. */
interface StationStart {
  /** What it was started with: with anything else, another one is needed. */
  key: string;
  /** Null where a station cannot be: the test is about that, too. */
  station: RunningStation | null;
  place: StationPlace;
}

interface StationPlace {
  /** The program and its first arguments. */
  program: readonly [string, ...string[]];
  home: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** What a test says besides, for this command alone. */
  own: Readonly<Record<string, string | undefined>>;
  /** Whether no other command is under way on this state folder. */
  isIdle: boolean;
}

/** A station for each state folder, started before the first command there. */
export function createModeStations(mode: StationMode = stationMode) {
  const starts = new Map<string, StationStart>();
  const run = ({ program: [file, ...first], cwd, env }: Pick<StationPlace, "program" | "cwd" | "env">, args: readonly string[]) =>
    spawnSync(file, [...first, ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  /** Shown once for each state folder, by its first station. */
  const tokens = new Map<string, string>();
  /** Ends that of a state folder, before the folder goes. */
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
    /** The variables with which a command finds the station of its state folder; none where there is no such thing. */
    variablesFor(place: StationPlace): Record<string, string> {
      if (mode === "none") return {};
      const { home } = place;
      const key = keyOf(place);
      const last = starts.get(home);
      if (last === undefined || (last.key !== key && place.isIdle)) {
        // As it was started: what another command says of itself may be wrong on purpose. Where the configuration is, it cannot be
        // ended, and goes on.
        const isOver = !last?.station || run(last.place, ["down"]).status === 0;
        const station = isOver ? stationFrom(run(place, ["up", "--detach", "--port", "0", "--json"]), tokens.get(home)) : null;
        if (station !== null) tokens.set(home, station.token);
        if (isOver) starts.set(home, { key, place, station });
      }
      const station = starts.get(home)?.station;
      return mode === "http" && station ? { CAISSON_URL: station.url, CAISSON_TOKEN: station.token } : {};
    },
    end,
    /** Ends all of them; one that does not is a failure. */
    endAll(): void {
      for (const home of [...starts.keys()]) end(home);
    },
  };
}

/** Whether this is the folder of a sandbox that a station keeps ready: it is nobody's yet. */
export function isKeptReady(folder: string, mode: StationMode = stationMode): boolean {
  if (mode === "none") return false;
  try {
    return readFileSync(join(folder, "sandbox.json"), "utf8").includes('"waiting": true');
  } catch {
    return false;
  }
}

/** A station reads its configuration and its environment when it starts. */
function keyOf({ home, own }: StationPlace): string {
  const file = join(home, "config.json");
  return JSON.stringify([own, existsSync(file) ? readFileSync(file, "utf8") : null]);
}

/**
 * Null for a state folder or a configuration with which no station can be. Any other failure is one: commands would do
 * their work themselves, and the tests would pass without having tried a station.
 */
function stationFrom({ stdout, stderr }: { stdout: string; stderr: string }, tokenBefore: string | undefined): RunningStation | null {
  const said = answerFrom(stdout);
  if (said?.error?.code === "invalid") return null;
  const { url, pid, token = tokenBefore } = said ?? {};
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
