import { randomBytes } from "node:crypto";
import { CaissonError } from "../contract/error.ts";
import { EnvName, ProcessRef } from "../contract/ids.ts";
import type { Limits, SandboxSpec } from "../contract/sandbox.ts";
import { checkTerminalSize } from "./call-checks.ts";
import { resolveSandboxPath, WORKSPACE } from "./path.ts";
import type { SpawnOptions } from "./sandbox.ts";

/** What a command of the sandbox starts with unless the template, the spec or the command says otherwise. */
const baseEnv: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/home/user",
  USER: "user",
  LANG: "C.UTF-8",
};
const rootEnv: Readonly<Record<string, string>> = { HOME: "/root", USER: "root" };
const TERMINAL = "xterm-256color";

/** A process to start, checked and complete, as the guest and the fake runtime take it. */
export interface SpawnRequest {
  ref: ProcessRef;
  argv: readonly string[];
  /** The whole environment, `K=V`. */
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
 * Checks what a caller asks for against the spec and the limits, and fills in what it left out. The result throws
 * `invalid` and `denied`.
 */
export function createSpawnRequests(options: {
  spec: SandboxSpec;
  limits: Limits;
  /** The template's own variables; they win over the built-in ones. */
  defaultEnv?: Readonly<Record<string, string>>;
}): (asked: SpawnOptions) => SpawnRequest {
  const { spec, limits } = options;
  const base = { ...baseEnv, ...options.defaultEnv, ...spec.env };
  const rootBase = { ...baseEnv, ...options.defaultEnv, ...rootEnv, ...spec.env };
  const baseList = envList(base);
  const prefix = `p-${randomBytes(5).toString("hex")}-`;
  let count = 0;

  const envFor = (asked: SpawnOptions): readonly string[] => {
    if (asked.env === undefined && asked.pty === undefined && asked.user !== "root") return baseList;
    const terminal = asked.pty === undefined ? {} : { TERM: TERMINAL };
    if (asked.env !== undefined) checkEnv(asked.env);
    return envList({ ...terminal, ...(asked.user === "root" ? rootBase : base), ...asked.env });
  };
  return (asked) => {
    checkArgv(asked.argv);
    if (asked.ref !== undefined) checkRef(asked.ref);
    checkUser(asked.user, spec.allowRoot);
    if (asked.timeoutMs !== undefined) checkPositive("timeoutMs", asked.timeoutMs);
    if (asked.outputBytesMax !== undefined) checkPositive("outputBytesMax", asked.outputBytesMax);
    if (asked.pty !== undefined) checkTerminalSize(asked.pty);
    const { wallClockMs, outputBytes } = limits;
    return {
      ref: asked.ref ?? prefix + (count++).toString(36),
      argv: asked.argv,
      env: envFor(asked),
      cwd: asked.cwd === undefined ? WORKSPACE : resolveSandboxPath(asked.cwd),
      user: asked.user,
      pty: asked.pty !== undefined,
      cols: asked.pty?.cols,
      rows: asked.pty?.rows,
      stdin: asked.pty !== undefined || asked.stdin === "pipe",
      timeoutMs: isUnlimited(asked, spec) ? undefined : Math.min(asked.timeoutMs ?? wallClockMs, wallClockMs),
      outputBytesMax: outputBytes === null ? asked.outputBytesMax : Math.min(asked.outputBytesMax ?? outputBytes, outputBytes),
      keepLast: asked.keepLastOutput,
    };
  };
}

/** The limit that commands commonly have is for those somebody waits for; one that was asked for holds for all. */
function isUnlimited({ keepLastOutput, timeoutMs }: SpawnOptions, { limits }: SandboxSpec): boolean {
  return keepLastOutput === true && timeoutMs === undefined && limits.wallClockMs === undefined;
}

export function checkRef(ref: ProcessRef): void {
  const parsed = ProcessRef.safeParse(ref);
  if (!parsed.success)
    throw new CaissonError("invalid", "the ref of a process is malformed", { hint: "Use 1 to 64 letters, digits or . _ : -" });
}

export function checkUser(user: string | undefined, allowRoot: boolean): void {
  if (user === undefined || user === "user") return;
  if (user === "root" || user === "0") {
    if (allowRoot) return;
    throw new CaissonError("denied", "this sandbox does not allow root", { hint: "Create it with allowRoot: true (--allow-root)." });
  }
  if (!/^[1-9][0-9]{0,9}$/.test(user) || Number(user) > 4_294_967_294) {
    throw new CaissonError("invalid", `there is no user ${JSON.stringify(user)}`, { hint: '"user", "root" or a decimal uid.' });
  }
}

function checkArgv(argv: readonly string[]): void {
  if (!Array.isArray(argv) || argv.length === 0 || argv[0] === "") {
    throw new CaissonError("invalid", "there is no program to start", { hint: 'Give argv, for example ["make", "test"].' });
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
      throw new CaissonError("invalid", `${JSON.stringify(name)} cannot name a variable`, { hint: "Use letters, digits and _." });
    }
    const value = env[name];
    if (typeof value !== "string" || value.includes("\0"))
      throw new CaissonError("invalid", `the variable ${name} is not text without NUL`);
  }
}

function checkPositive(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) throw new CaissonError("invalid", `${name} must be a positive whole number`);
}

function envList(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}
