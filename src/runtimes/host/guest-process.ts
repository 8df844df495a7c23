import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { ifErrnoSync, ignore, UNREACHABLE } from "../../lib/failures.ts";
import { hasEnded, processStat } from "../../lib/process-stat.ts";
import { tokenName } from "../../sandbox/guest-token.ts";

/**
 * Set in the environment of everything that a host sandbox starts, so that processes that outlive their guest can be
 * found.
 */
export const SANDBOX_MARK = "CAISSON_SANDBOX";
export const SOCKET_NAME = "guest.sock";
const LOG_NAME = "guest.log";
const KILL_ROUNDS = 200;
const KILL_PAUSE_MS = 10;

/**
 * Starts a guest in a separate session, so that it survives its creator. Its working directory is `dir`, in which it
 * binds its socket: the path can have any length, and an unrecorded guest can be found by its folder.
 */
export function startGuest(options: { guestPath: string; dir: string; id: string; uid: number; gid: number; home: string }): {
  pid: number;
  /** Rejects if the guest ends or cannot be started; never resolves. */
  failed: Promise<never>;
} {
  const { guestPath, dir, id, uid, gid, home } = options;
  const log = openSync(join(dir, LOG_NAME), "a", 0o600);
  try {
    const argv = [
      "init",
      "--not-init",
      "--listen-path",
      SOCKET_NAME,
      "--token-file",
      tokenName,
      "--uid",
      `${uid}`,
      "--gid",
      `${gid}`,
      "--home",
      home,
    ];
    const child = spawn(guestPath, argv, { cwd: dir, detached: true, stdio: ["ignore", log, log], env: { [SANDBOX_MARK]: id } });
    const failed = new Promise<never>((_resolve, reject) => {
      child.once("error", (error) =>
        reject(
          new CaissonError("unavailable", `the guest ${guestPath} cannot be started`, {
            cause: error,
            hint: "Build it with `make -C guest`.",
          }),
        ),
      );
      child.once("exit", (code, signal) =>
        reject(new CaissonError("unavailable", `the guest ended at once (${signal ?? code}): ${logTail(dir)}`)),
      );
    });
    void ignore(failed, "awaited by the caller while it starts the guest");
    child.unref();
    return { pid: child.pid ?? 0, failed };
  } finally {
    closeSync(log);
  }
}

/**
 * Kills every process of a sandbox: guests in this folder, their descendants, and processes with the sandbox's mark.
 * Resolves when all of them are dead.
 */
export async function killEverything(dir: string, id: string): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const live = processesOf(dir, id);
    if (live.length === 0) return;
    // Stop all of them first, so that they cannot start new processes while we kill them.
    for (const pid of live) signalQuietly(pid, "SIGSTOP");
    for (const pid of processesOf(dir, id)) signalQuietly(pid, "SIGKILL");
    await delay(KILL_PAUSE_MS);
  }
  throw new CaissonError("internal", `processes of sandbox ${id} survived being killed`, { details: { pids: processesOf(dir, id) } });
}

export function processesOf(dir: string, id: string): number[] {
  const processes = allProcesses();
  const found = new Set<number>();
  for (const { pid } of processes) if (isGuestOf(pid, dir) || carriesMark(pid, id)) found.add(pid);
  // Children may be listed before their parents, so we repeat until the set no longer grows.
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const { pid, parent } of processes) if (found.has(parent)) found.add(pid);
  }
  found.delete(process.pid);
  return [...found];
}

export function guestAlive(dir: string): boolean {
  return allProcesses().some(({ pid }) => isGuestOf(pid, dir));
}

function allProcesses(): { pid: number; parent: number }[] {
  const processes: { pid: number; parent: number }[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(name)) continue;
    const stat = processStat(Number(name));
    if (stat !== null && !hasEnded(stat)) processes.push({ pid: Number(name), parent: stat.parent });
  }
  return processes;
}

function isGuestOf(pid: number, dir: string): boolean {
  if (!readProc(`/proc/${pid}/cmdline`).includes(`\0init\0--not-init\0--listen-path\0${SOCKET_NAME}\0`)) return false;
  return ifErrnoSync(() => readlinkSync(`/proc/${pid}/cwd`) === dir, goneProcess, false);
}

function carriesMark(pid: number, id: string): boolean {
  return `\0${readProc(`/proc/${pid}/environ`)}`.includes(`\0${SANDBOX_MARK}=${id}\0`);
}

const goneProcess = [...UNREACHABLE, "ESRCH"];

function readProc(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "latin1"), goneProcess, "");
}

function logTail(dir: string): string {
  return ifErrnoSync(() => readFileSync(join(dir, LOG_NAME), "utf8").slice(-500).trim(), UNREACHABLE, "");
}

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  ifErrnoSync(() => process.kill(pid, signal), ["ESRCH", "EPERM"], false);
}
