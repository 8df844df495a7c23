import { randomBytes } from "node:crypto";
import { CaissonError } from "../contract/error/error.ts";
import { EnvName, ProcessRef } from "../contract/ids.ts";
import type { Limits, SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { checkTerminalSize } from "./call-checks.ts";
import { resolveSandboxPath, WORKSPACE } from "./path.ts";
import type { SpawnOptions } from "./sandbox.ts";

/** A command's variables, which the template, the config and the command override. */
const baseEnv: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/home/user",
  USER: "user",
  LANG: "C.UTF-8",
};
const rootEnv: Readonly<Record<string, string>> = { HOME: "/root", USER: "root" };
const TERMINAL = "xterm-256color";

/** A checked and complete request to start a process, for the guest and the fake runtime. */
export interface SpawnRequest {
  ref: ProcessRef;
  argv: readonly string[];
  /** The complete environment, as `K=V`. */
  env: readonly string[];
  cwd: string;
  user: string | undefined;
  pty: boolean;
  cols: number | undefined;
  rows: number | undefined;
  stdin: boolean;
  timeoutMs: number | undefined;
  outputBytesMax: number | undefined;
  keepLast: boolean | undefined;
}

/**
 * Returns a function that checks a caller's options against the config and the limits, and fills in the defaults. That
 * function throws `invalid` and `denied`.
 */
export function createSpawnRequests(options: {
  config: SandboxConfig;
  limits: Limits;
  /** The template's variables, which override the built-in ones. */
  defaultEnv?: Readonly<Record<string, string>>;
}): (spawnOptions: SpawnOptions) => SpawnRequest {
  const { config, limits } = options;
  const base = { ...baseEnv, ...options.defaultEnv, ...config.env };
  const rootBase = { ...baseEnv, ...options.defaultEnv, ...rootEnv, ...config.env };
  const baseList = envList(base);
  const prefix = `p-${randomBytes(5).toString("hex")}-`;
  let count = 0;

  const envFor = (spawnOptions: SpawnOptions): readonly string[] => {
    if (spawnOptions.env === undefined && spawnOptions.pty === undefined && spawnOptions.user !== "root") return baseList;
    const terminal = spawnOptions.pty === undefined ? {} : { TERM: TERMINAL };
    if (spawnOptions.env !== undefined) checkEnv(spawnOptions.env);
    return envList({ ...terminal, ...(spawnOptions.user === "root" ? rootBase : base), ...spawnOptions.env });
  };
  return (spawnOptions) => {
    checkArgv(spawnOptions.argv);
    if (spawnOptions.ref !== undefined) checkRef(spawnOptions.ref);
    checkUser(spawnOptions.user, config.allowRoot);
    if (spawnOptions.timeoutMs !== undefined) checkPositive("timeoutMs", spawnOptions.timeoutMs);
    if (spawnOptions.outputBytesMax !== undefined) checkPositive("outputBytesMax", spawnOptions.outputBytesMax);
    if (spawnOptions.pty !== undefined) checkTerminalSize(spawnOptions.pty);
    const { wallClockMs, outputBytes } = limits;
    return {
      ref: spawnOptions.ref ?? prefix + (count++).toString(36),
      argv: spawnOptions.argv,
      env: envFor(spawnOptions),
      cwd: spawnOptions.cwd === undefined ? WORKSPACE : resolveSandboxPath(spawnOptions.cwd),
      user: spawnOptions.user,
      pty: spawnOptions.pty !== undefined,
      cols: spawnOptions.pty?.cols,
      rows: spawnOptions.pty?.rows,
      stdin: spawnOptions.pty !== undefined || spawnOptions.stdin === "pipe",
      timeoutMs: isUnlimited(spawnOptions, config) ? undefined : Math.min(spawnOptions.timeoutMs ?? wallClockMs, wallClockMs),
      outputBytesMax:
        outputBytes === null ? spawnOptions.outputBytesMax : Math.min(spawnOptions.outputBytesMax ?? outputBytes, outputBytes),
      keepLast: spawnOptions.keepLastOutput,
    };
  };
}

/**
 * Whether the default time limit does not apply, because it only suits commands that a caller waits for. An explicit
 * limit applies to every command.
 */
function isUnlimited({ keepLastOutput, timeoutMs }: SpawnOptions, { limits }: SandboxConfig): boolean {
  return keepLastOutput === true && timeoutMs === undefined && limits.wallClockMs === undefined;
}

export function checkRef(ref: ProcessRef): void {
  const parsed = ProcessRef.safeParse(ref);
  if (!parsed.success) throw new CaissonError("invalid", "malformed process ref", { hint: "Use 1 to 64 letters, digits or . _ : -" });
}

export function checkUser(user: string | undefined, allowRoot: boolean): void {
  if (user === undefined || user === "user") return;
  const [, uid = user, gid = null] = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(user) ?? [];
  if (uid === "root" || uid === "0" || gid !== null) {
    if (!allowRoot)
      throw new CaissonError("denied", `this sandbox does not allow ${gid === null ? "root" : "other groups"}`, {
        hint: "Create it with allowRoot: true (--allow-root).",
      });
    if (uid === "root") return;
  }
  if (![uid, gid ?? "0"].every((id) => /^(?:0|[1-9][0-9]*)$/.test(id) && Number(id) <= 4_294_967_294))
    throw new CaissonError("invalid", `there is no user ${JSON.stringify(user)}`, {
      hint: 'Use "user", "root", a decimal uid or UID:GID.',
    });
}

function checkArgv(argv: readonly string[]): void {
  if (!Array.isArray(argv) || argv.length === 0 || argv[0] === "") {
    throw new CaissonError("invalid", "no program to start", { hint: 'Pass argv, for example ["make", "test"].' });
  }
  for (const argument of argv) {
    if (typeof argument !== "string") throw new CaissonError("invalid", "an argument is not a string");
    if (argument.includes("\0"))
      throw new CaissonError("invalid", "an argument contains NUL", { hint: "Pass binary data through stdin or a file." });
  }
}

function checkEnv(env: Readonly<Record<string, string>>): void {
  for (const name in env) {
    if (!EnvName.safeParse(name).success) {
      throw new CaissonError("invalid", `${JSON.stringify(name)} is not a valid variable name`, { hint: "Use letters, digits and _." });
    }
    const value = env[name];
    if (typeof value !== "string" || value.includes("\0"))
      throw new CaissonError("invalid", `the variable ${name} must be a string without NUL`);
  }
}

function checkPositive(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) throw new CaissonError("invalid", `${name} must be a positive whole number`);
}

function envList(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}
