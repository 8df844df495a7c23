import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { HostProcess } from "../../contract/process-identity.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { processStat } from "../../lib/process-stat.ts";
import { conditionOfProcess, isRunning } from "../../sandbox/process-identity.ts";
import type { HostView } from "../../sandbox/runtime.ts";
import { seenProcesses } from "../../sandbox/seen-processes.ts";
import type { Restarted, Watched } from "./watched.ts";

export interface WatchedDriverOptions {
  run: string;
  owner: string;
  /** Another process of this machine. */
  driver: HostProcess;
  /** Its lease as it was renewed last: another value with each renewal. Others may write to the run's log, too. */
  newest: () => string;
  /** Drives the run from here on, in the driver's place. */
  takeOver: () => Promise<void>;
}

const LOOK_MS = 50;

/**
 * What drives a run, in a process of its own: that it renews its lease is its sign of life. Whether the run waits for a
 * model or a person does not matter: its lease is renewed meanwhile.
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
    // Ctrl-Z holds it: its user will say when it goes on.
    excuse: () =>
      processStat(driver.pid)?.hasTerminal === true && conditionOfProcess(driver) === "stopped" ? "it was stopped in a terminal" : null,
    look: async (): Promise<HostView> => ({
      condition: conditionOfProcess(driver),
      stats: null,
      // Not how it was called: that may name values of the user's.
      processes: seenProcesses([driver.pid]).map((process) => ({ ...process, command: "caisson" })),
    }),
    restart: (about) => replaceDriver(options, about),
    async [Symbol.asyncDispose]() {},
  };
}

/** Asked to end, then ended: what it appends later is refused, and so is what it does inside, once another drives. */
async function replaceDriver(
  { run, driver, takeOver, newest }: WatchedDriverOptions,
  { graceMs, signal }: { graceMs: number; signal: AbortSignal },
): Promise<Restarted> {
  const before = newest();
  // One that was stopped can act on it only when it goes on.
  for (const name of ["SIGTERM", "SIGCONT"] as const) signalProcess(driver, name);
  for (let waitedMs = 0; waitedMs < graceMs && isRunning(driver); waitedMs += LOOK_MS) {
    if (signal.aborted) return { outcome: "failed", text: "the station ended before it did" };
    await delay(LOOK_MS);
  }
  const ended = isRunning(driver) ? "it was killed" : "it ended when it was asked to";
  if (isRunning(driver) && newest() !== before) return { outcome: "recovered", text: "it works again" };
  signalProcess(driver, "SIGKILL");
  while (isRunning(driver) && !signal.aborted) await delay(LOOK_MS);
  // Two must not drive one run: who has not ended yet may still do something.
  if (isRunning(driver)) return { outcome: "failed", text: "the station ended before it did" };
  await takeOver();
  return { outcome: "restarted", text: `process ${driver.pid} drove the run ${run}: ${ended}, and the station drives it now` };
}

/** Never another process that has its number by now. */
function signalProcess(driver: HostProcess, name: NodeJS.Signals): void {
  if (!isRunning(driver)) return;
  try {
    process.kill(driver.pid, name);
  } catch (cause) {
    if (isErrno(cause, "ESRCH")) return;
    throw new CaissonError("unsupported", `process ${driver.pid} is another user's, and cannot be ended`, { cause });
  }
}
