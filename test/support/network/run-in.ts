import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { until } from "../../e2e/caisson-process.ts";
import { createModeStations, isKeptReady } from "../station-modes.ts";
import { type Internet, startInternet } from "./internet.ts";

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Started {
  child: ChildProcess;
  finished: Promise<Finished>;
  /** Resolves with the whole output so far when it matches. Rejects if the program ends first. */
  says(what: RegExp): Promise<string>;
}

export interface RunOptions {
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
}

/** A user's Caisson on the rig's machine, with a separate home and a current folder. */
export interface MachineCaisson {
  readonly internet: Internet;
  /** The state folder. */
  readonly home: string;
  /** The folder in which commands start. */
  readonly folder: string;
  /** Runs `caisson …`. */
  run(argv: readonly string[], options?: RunOptions): Promise<Finished>;
  start(argv: readonly string[], options?: RunOptions): Started;
  /** Runs another program on the machine. */
  program(argv: readonly string[], options?: RunOptions): Promise<Finished>;
  startProgram(argv: readonly string[], options?: RunOptions): Started;
  sandboxes(): string[];
  removeAll(): Promise<void>;
}

const root = join(import.meta.dirname, "../../..");

/**
 * Sets up a rig for the calling file. At the end it removes all sandboxes, and with them every process on the machine.
 */
export function useMachine(options: { env?: Record<string, string> } = {}): MachineCaisson {
  let internet: Internet | undefined;
  let machine: MachineCaisson | undefined;
  beforeAll(async () => {
    internet = await startInternet();
    machine = caissonOn(internet, options);
  });
  afterAll(async () => {
    try {
      await machine?.removeAll();
    } finally {
      await internet?.[Symbol.asyncDispose]();
    }
  });
  return new Proxy({} as MachineCaisson, { get: (_, name) => machine?.[name as keyof MachineCaisson] });
}

export function caissonOn(
  internet: Internet,
  options: { env?: Record<string, string>; as?: { uid: number; gid: number } } = {},
): MachineCaisson {
  const outer = mkdtempSync(join(internet.folder, "user-"));
  const home = join(outer, "home");
  const folder = join(outer, "work");
  mkdirSync(folder);
  if (options.as) for (const path of [outer, folder]) chownSync(path, options.as.uid, options.as.gid);
  const variables = options.as ? { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: outer, LANG: "C.UTF-8" } : process.env;

  const stations = createModeStations();
  let underWay = 0;

  function startProgram(argv: readonly string[], { input = "", cwd = folder, env = {} }: RunOptions = {}): Started {
    const [program = "", ...rest] = internet.onMachine(argv, options.as);
    const child = spawn(program, rest, { cwd, env: { ...environment, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    return started(child, input);
  }
  const environment = { ...variables, ...internet.env, CAISSON_HOME: home, ...options.env };
  const start: MachineCaisson["start"] = (argv, { env: own = {}, ...runOptions } = {}) => {
    const env = { ...environment, ...own };
    const program = internet.onMachine([join(root, "caisson")], options.as) as [string, ...string[]];
    const found = stations.variablesFor({ program, home, cwd: folder, env, own, isIdle: underWay === 0 });
    const command = startProgram([join(root, "caisson"), ...argv], { ...runOptions, env: { ...own, ...found } });
    underWay += 1;
    void command.finished.finally(() => {
      underWay -= 1;
    });
    return command;
  };
  const machine: MachineCaisson = {
    internet,
    home,
    folder,
    start,
    run: (argv, runOptions) => start(argv, runOptions).finished,
    startProgram,
    program: (argv, runOptions) => startProgram(argv, runOptions).finished,
    sandboxes() {
      const names = existsSync(join(home, "sandboxes")) ? readdirSync(join(home, "sandboxes")) : [];
      return names.filter((name) => !isKeptReady(join(home, "sandboxes", name)));
    },
    async removeAll() {
      await machine.run(["sandbox", "rm", "--all", "--yes"]);
      stations.endAll();
      expect(machine.sandboxes(), "folders of sandboxes").toEqual([]);
      await until("no process on the machine", () => internet.processes().length === 0);
    },
  };
  return machine;
}

function started(child: ChildProcess, input: string): Started {
  const written = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
      for (const listener of listeners) listener();
    });
  }
  // A command may end without reading its input.
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  const finished = once(child, "close").then(
    ([code, signal]) => ({ code, signal, ...written, stderr: withoutSetup(written.stderr) }) as Finished,
  );
  return {
    child,
    finished,
    says: (what) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const all = written.stdout + written.stderr;
          if (!what.test(all)) return;
          listeners.delete(look);
          resolve(all);
        };
        listeners.add(look);
        look();
        finished.then(
          ({ code, stdout, stderr }) => reject(new Error(`ended with ${code} and never said ${what}:\n${stdout}${stderr}`)),
          reject,
        );
      }),
  };
}

/** Removes the output of the launcher's setup, which runs again when sources have changed. */
function withoutSetup(text: string): string {
  return text.replaceAll(/^setup: .*\n/gm, "");
}
