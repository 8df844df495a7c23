import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import type { RunEvent } from "../../src/contract/run/run-event.ts";
import { cliBundle } from "./cli-bundle.ts";
import { createModeStations, isKeptReady } from "./station-modes.ts";

const root = join(import.meta.dirname, "..", "..");
const node = join(root, "node_modules", "node", "bin", "node");

export type LoggedEvent = RunEvent & { seq: number };

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  text: string;
  stderr: string;
  /** The events on stdout. */
  events: LoggedEvent[];
}

export interface Going {
  child: ChildProcess;
  ended: Promise<Ended>;
  /** Resolves with the first event of this type that the command prints with --json. */
  event<Type extends RunEvent["type"]>(
    type: Type,
    matching?: (event: Extract<LoggedEvent, { type: Type }>) => boolean,
  ): Promise<Extract<LoggedEvent, { type: Type }>>;
  /** Resolves when stdout matches. */
  output(pattern: RegExp): Promise<string>;
  /** Returns the end of stdout and stderr so far. */
  said(): string;
}

export interface StartOptions {
  cwd?: string;
  env?: Record<string, string | undefined>;
  /** Another state folder than that of the test file. */
  home?: string;
}

/**
 * Runs the command line as one bundle, as the launcher does, with a state folder and a work folder for each test file.
 * Removes both at the end.
 */
export function useRunsCli() {
  let base = "";
  let program = "";
  let compileCache = "";
  beforeAll(async () => {
    base = await mkdtemp(join(tmpdir(), "caisson-test-runs-"));
    await mkdir(join(base, "work"));
    ({ program, compileCache } = await cliBundle(node));
  });
  afterAll(async () => {
    for (const home of homes) if (hasSandboxes(home)) await run(["sandbox", "rm", "--all", "--yes"], { home });
    stations.endAll();
    await rm(base, { recursive: true, force: true });
  });
  const home = () => join(base, "home");
  const homes = new Set<string>();
  const stations = createModeStations();

  const environment = (options: StartOptions): NodeJS.ProcessEnv => {
    const state = options.home ?? home();
    homes.add(state);
    const env = {
      ...process.env,
      CAISSON_HOME: state,
      XDG_CONFIG_HOME: join(base, "config"),
      NODE_COMPILE_CACHE: compileCache,
      NO_COLOR: "1",
      ...options.env,
    };
    const isIdle = ![...commands].some((command) => command.home === state);
    const place = { program: [node, program] as const, home: state, cwd: join(base, "work"), env, own: options.env ?? {}, isIdle };
    return { ...env, ...stations.variablesFor(place) };
  };
  function start(argv: readonly string[], options: StartOptions = {}): Going {
    const child = spawn(node, [program, ...argv], {
      cwd: options.cwd ?? join(base, "work"),
      env: environment(options),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const going = watch(child);
    const command = { argv, home: options.home ?? home(), going };
    commands.add(command);
    void going.ended.finally(() => commands.delete(command));
    return going;
  }
  const commands = new Set<{ argv: readonly string[]; home: string; going: Going }>();
  const run = (argv: readonly string[], options: StartOptions = {}): Promise<Ended> => start(argv, options).ended;
  return {
    start,
    run,
    home,
    base: () => base,
    work: () => join(base, "work"),
    /** The command line to type into a terminal. */
    commandLine: () => `${node} ${program}`,
    environment,
    /** Ends the station of a state folder that is removed early. */
    endStation: (state: string) => stations.end(state),
    /** Kills the commands that still run on this state folder, and returns what each had printed. */
    killAll(state: string): string[] {
      return [...commands]
        .filter((command) => command.home === state)
        .map(({ argv, going }) => {
          going.child.kill("SIGKILL");
          return `${argv.join(" ")}: ${going.said()}`;
        });
    },
    /** Creates a folder with these files. */
    async folder(files: Record<string, string> = {}): Promise<string> {
      const path = await mkdtemp(join(base, "folder-"));
      for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
      return path;
    },
    /** Writes a script and returns its value for `--model`. */
    async script(value: Script): Promise<string> {
      const path = join(await mkdtemp(join(base, "script-")), "script.json");
      await writeFile(path, JSON.stringify(value));
      return `scripted:${path}`;
    },
    async events(id: string, options: StartOptions = {}): Promise<LoggedEvent[]> {
      const { events, stderr } = await run(["logs", "--json", id], options);
      if (events.length === 0) throw new Error(`no events of ${id}: ${stderr}`);
      return events;
    },
    sandboxes(state = home()): string[] {
      const folder = join(state, "sandboxes");
      return existsSync(folder) ? readdirSync(folder).filter((id) => !isKeptReady(join(folder, id))) : [];
    },
  };
}

/** Returns whether there is anything to remove, which is quicker than a command that finds nothing. */
export function hasSandboxes(home: string): boolean {
  const folder = join(home, "sandboxes");
  return existsSync(folder) && readdirSync(folder).length > 0;
}

function watch(child: ChildProcess): Going {
  let text = "";
  let stderr = "";
  const changed = new EventTarget();
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    changed.dispatchEvent(new Event("more"));
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  let over = false;
  const ended = once(child, "close").then(([code, signal]): Ended => {
    over = true;
    changed.dispatchEvent(new Event("more"));
    return { code, signal, text, stderr, events: parseEvents(text) };
  });
  const until = async <Found>(what: string, look: () => Found | undefined): Promise<Found> => {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (over) throw new Error(`ended without ${what}: ${text.slice(-2000)}\n${stderr}`);
      await new Promise((resolve) => changed.addEventListener("more", resolve, { once: true }));
    }
  };
  return {
    child,
    ended,
    event: (type, matching = () => true) =>
      until(type, () => parseEvents(text).find((event) => event.type === type && matching(event as never)) as never),
    said: () => `${text.slice(-2000)}\n${stderr.slice(-2000)}`,
    output: (pattern) => until(String(pattern), () => pattern.exec(text)?.[0]),
  };
}

function parseEvents(text: string): LoggedEvent[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith('{"seq"'))
    .map((line) => JSON.parse(line) as LoggedEvent);
}
