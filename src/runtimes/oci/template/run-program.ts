import { spawn } from "node:child_process";
import { CaissonError } from "../../../contract/error/error.ts";

const OUTPUT_BYTES_MAX = 256 * 1024;
const LINE_CHARACTERS_MAX = 500;

export interface ProgramOutcome {
  exitCode: number | null;
  stdout: string;
  /** The last line on stderr, for messages. */
  lastLine: string;
}

/**
 * Runs a host tool to completion, without a shell. Kills it on abort or after the timeout. Throws `unavailable` if it
 * is not installed, `cancelled`, `timeout`.
 */
export async function runProgram(options: {
  argv: readonly [string, ...string[]];
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  stdin?: string;
  signal?: AbortSignal | undefined;
  missing: { hint: string };
}): Promise<ProgramOutcome> {
  const [program, ...args] = options.argv;
  const { promise, resolve, reject } = Promise.withResolvers<ProgramOutcome>();
  if (options.signal?.aborted) throw new CaissonError("cancelled", `${program} was cancelled`);
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...options.env }, cwd: "/" });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill("SIGKILL");
  }, options.timeoutMs);
  const abort = () => child.kill("SIGKILL");
  options.signal?.addEventListener("abort", abort, { once: true });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (stdout.length < OUTPUT_BYTES_MAX) stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-OUTPUT_BYTES_MAX);
  });
  // The exit status of a program that ends before it has read its input tells why.
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  child.on("error", (cause) => {
    clearTimeout(timer);
    reject(new CaissonError("unavailable", `${program} cannot be started`, { cause, hint: options.missing.hint }));
  });
  child.on("close", (exitCode) => {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", abort);
    if (options.signal?.aborted) return reject(new CaissonError("cancelled", `${program} was cancelled`));
    if (timedOut) return reject(new CaissonError("timeout", `${program} took longer than ${options.timeoutMs} ms`));
    const lastLine = stderr.trim().split("\n").at(-1)?.slice(0, LINE_CHARACTERS_MAX) ?? "";
    resolve({ exitCode, stdout, lastLine });
  });
  return promise;
}
