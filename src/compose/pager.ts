import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { isAbsolute, join } from "node:path";
import { line } from "../cli/terminal/line.ts";
import type { Output } from "../cli/terminal/output.ts";
import { isErrno } from "../lib/is-errno.ts";
import type { Variables } from "./environment.ts";

export interface Pager {
  /** Standard output, through the user's pager when it is a terminal. The same one until it is closed. */
  open(): Promise<Output>;
  /** Resolves once the user has left the pager. Nothing to do where none was opened. */
  close(): Promise<void>;
}

/** As git chooses it, from the environment alone: nothing in a folder says which program is started. */
export function createPager(options: { stdout: Output; stderr: Output; variables: Variables; path: string }): Pager {
  const { stdout, stderr, variables } = options;
  let opened: Promise<{ output: Output; program: ChildProcess | null }> | undefined;
  const start = async (): Promise<{ output: Output; program: ChildProcess | null }> => {
    const none = { output: stdout, program: null };
    const [file, ...args] = stdout.isTerminal ? pagerCommand(variables, options.path) : [];
    if (file === undefined) return none;
    // What less does unless the user says otherwise: colours, no screen of its own, and no waiting for a short text.
    const env = { ...variables, LESS: variables.LESS ?? "FRX", LV: variables.LV ?? "-c" };
    const { spawn } = await import("node:child_process");
    const program = spawn(file, args, { stdio: ["pipe", "inherit", "inherit"], env });
    try {
      await once(program, "spawn");
    } catch (error) {
      const reason = isErrno(error, "ENOENT") ? "there is no such program" : (error as Error).message;
      await stderr.print(line`caisson: the pager ${file} cannot be started: ${reason}`);
      return none;
    }
    // Whoever leaves the pager early has seen enough: that is no failure.
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

/** Empty for none. */
export function pagerCommand(variables: Variables, path: string): string[] {
  if (variables.TERM === "dumb") return [];
  const asked = variables.CAISSON_PAGER ?? variables.PAGER;
  const words = (asked ?? (isOnPath("less", path) ? "less" : "")).trim().split(/\s+/);
  return words[0] === "" || (words.length === 1 && words[0] === "cat") ? [] : words;
}

function isOnPath(program: string, path: string): boolean {
  return path
    .split(":")
    .filter(isAbsolute)
    .some((folder) => {
      try {
        accessSync(join(folder, program), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
