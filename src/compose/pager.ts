import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { isAbsolute, join } from "node:path";
import { line } from "../cli/terminal/line.ts";
import type { Output } from "../cli/terminal/output.ts";
import { ifErrnoSync, isErrno, UNREACHABLE } from "../lib/failures.ts";
import type { Variables } from "./environment.ts";

export interface Pager {
  /** Opens standard output, through the user's pager if it is a terminal. Returns the same output until `close`. */
  open(): Promise<Output>;
  /** Resolves when the user has left the pager. Does nothing if no pager was opened. */
  close(): Promise<void>;
}

/**
 * Chooses the pager as git does, from the environment only: files in the current folder must not decide which program
 * starts.
 */
export function createPager(options: { stdout: Output; stderr: Output; variables: Variables; path: string }): Pager {
  const { stdout, stderr, variables } = options;
  let opened: Promise<{ output: Output; program: ChildProcess | null }> | undefined;
  const start = async (): Promise<{ output: Output; program: ChildProcess | null }> => {
    const none = { output: stdout, program: null };
    const [file, ...args] = stdout.isTerminal ? pagerCommand(variables, options.path) : [];
    if (file === undefined) return none;
    // The default settings of less: color, no alternate screen, and no wait for a short text.
    const env = { ...variables, LESS: variables.LESS ?? "FRX", LV: variables.LV ?? "-c" };
    const { spawn } = await import("node:child_process");
    const program = spawn(file, args, { stdio: ["pipe", "inherit", "inherit"], env });
    try {
      await once(program, "spawn");
    } catch (error) {
      const reason = isErrno(error, "ENOENT") ? "no such program" : (error as Error).message;
      await stderr.print(line`caisson: the pager ${file} cannot be started: ${reason}`);
      return none;
    }
    // A user who leaves the pager early has seen enough: not an error.
    program.stdin.on("error", () => {});
    return { output: stdout.through(program.stdin), program };
  };
  return {
    async open() {
      opened ??= start();
      return (await opened).output;
    },
    async close() {
      const program = (await opened)?.program;
      opened = undefined;
      if (program === null || program === undefined) return;
      program.stdin?.end();
      if (program.exitCode === null && program.signalCode === null) await once(program, "exit");
    },
  };
}

/** Returns the pager's argv, or an empty list for none. */
export function pagerCommand(variables: Variables, path: string): string[] {
  if (variables.TERM === "dumb") return [];
  const command = variables.CAISSON_PAGER ?? variables.PAGER;
  const words = (command ?? (isOnPath("less", path) ? "less" : "")).trim().split(/\s+/);
  return words[0] === "" || (words.length === 1 && words[0] === "cat") ? [] : words;
}

function isOnPath(program: string, path: string): boolean {
  return path
    .split(":")
    .filter(isAbsolute)
    .some((folder) => ifErrnoSync(() => accessSync(join(folder, program), constants.X_OK) === undefined, UNREACHABLE, false));
}
