import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { HostProcess } from "../../contract/process-identity.ts";
import { isErrno } from "../../lib/failures.ts";
import { processStat } from "../../lib/process-stat.ts";
import { seenProcesses } from "../../sandbox/host-processes.ts";
import { conditionOfProcess, isRunning } from "../../sandbox/process-identity.ts";
import type { HostView } from "../../sandbox/runtime.ts";
import type { Restarted, Watched } from "./watched-subject.ts";

export interface WatchedDriverOptions {
  run: string;
  owner: string;
  /** Another process on this machine. */
  driver: HostProcess;
  /**
   * Returns a value that changes with each of the driver's lease renewals. Events cannot replace it, because other
   * processes append to the run log as well.
   */
  newest: () => string;
  /** Drives the run in this process, in place of the driver. */
  takeOver: () => Promise<void>;
}

const LOOK_MS = 50;

/**
 * Watches a run's driver in a separate process. Its lease renewals are its heartbeat; they continue while the run waits
 * for a model or a person.
 */
export function watchDriver(options: WatchedDriverOptions): Watched {
  const { run, owner, driver } = options;
  return {
    subject: { kind: "driver", id: run },
    run,
    owner,
    sign: options.newest,
    prod: () => {},
    isBusy: () => true,
    // A user stopped it with Ctrl-Z, and decides when it continues.
    excuse: () =>
      processStat(driver.pid)?.hasTerminal === true && conditionOfProcess(driver) === "stopped" ? "it was stopped in a terminal" : null,
    look: async (): Promise<HostView> => ({
      condition: conditionOfProcess(driver),
      stats: null,
      // Hides the command line, which may contain the user's values.
      processes: seenProcesses([driver.pid]).map((process) => ({ ...process, command: "caisson" })),
    }),
    restart: (about) => replaceDriver(options, about),
    async [Symbol.asyncDispose]() {},
  };
}

/**
 * Asks the driver to end, then kills it. After another process has taken over, the log refuses the old driver's
 * appends, and the sandbox refuses its commands.
 */
async function replaceDriver(
  { run, driver, takeOver, newest }: WatchedDriverOptions,
  { graceMs, signal }: { graceMs: number; signal: AbortSignal },
): Promise<Restarted> {
  const before = newest();
  // A stopped process handles the signal only when it continues.
  for (const name of ["SIGTERM", "SIGCONT"] as const) signalProcess(driver, name);
  for (let waitedMs = 0; waitedMs < graceMs && isRunning(driver); waitedMs += LOOK_MS) {
    if (signal.aborted) return { outcome: "failed", text: "the station stopped before the driver ended" };
    await delay(LOOK_MS);
  }
  const ended = isRunning(driver) ? "it was killed" : "it ended on request";
  if (isRunning(driver) && newest() !== before) return { outcome: "recovered", text: "it is working again" };
  signalProcess(driver, "SIGKILL");
  while (isRunning(driver) && !signal.aborted) await delay(LOOK_MS);
  // Two processes must not drive one run: a driver that is still alive may act.
  if (isRunning(driver)) return { outcome: "failed", text: "the station stopped before the driver ended" };
  await takeOver();
  return { outcome: "restarted", text: `process ${driver.pid} drove the run ${run}: ${ended}, and the station drives the run now` };
}

/** Never signals another process that has reused the pid. */
function signalProcess(driver: HostProcess, name: NodeJS.Signals): void {
  if (!isRunning(driver)) return;
  try {
    process.kill(driver.pid, name);
  } catch (cause) {
    if (isErrno(cause, "ESRCH")) return;
    throw new CaissonError("unsupported", `process ${driver.pid} belongs to another user and cannot be ended`, { cause });
  }
}
