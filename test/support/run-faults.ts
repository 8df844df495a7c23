import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { expect, vi } from "vitest";
import { lockHolder } from "../../src/log/sqlite/lock-holder.ts";
import { processOne } from "./process-one.ts";
import type { Random } from "./random.ts";
import type { Ended, Going, useRunsCli } from "./runs-cli.ts";

const LEASE_MS = 15_000;

/** A run with a fault. */
export interface Round {
  home: string;
  folder: string;
  model: string;
  going: Going;
  run: string;
  random: Random;
  /** How the run should end. */
  reason: "done" | "cancelled";
  problems: string[];
  demand(holds: boolean, what: string): void;
}

export interface Fault {
  /** Strikes at a random moment of the run. The function that it resolves with checks how the driver ended. */
  strike(round: Round): Promise<((ended: Ended) => void) | undefined>;
  /** Calls may fail or have an unknown outcome, so each one happens at most once. */
  callsMayFail?: boolean;
  /** The state folder is on a small disk. */
  smallDisk?: boolean;
  /** The run asks a question in the middle. */
  asks?: boolean;
}

/** Every kind of fault that can strike a run, by name. */
export const faultsOf = (cli: ReturnType<typeof useRunsCli>): Record<string, Fault> => ({
  "the log is locked for long": {
    async strike({ going, home, random, demand }) {
      const database = new DatabaseSync(join(home, "log.db"), { timeout: 5_000 });
      database.exec("BEGIN IMMEDIATE");
      // A waiting process reports this after a while. On a busy machine it may take long to start waiting, and a run
      // that has ended never waits.
      const isTold = () => going.said().includes(`process ${process.pid} holds the log`);
      const isOver = () => going.child.exitCode !== null || going.child.signalCode !== null;
      while (!isTold() && !isOver()) await delay(50);
      await delay(random.between(0, 9_000));
      database.exec("ROLLBACK");
      database.close();
      return (ended) => demand(ended.code === 0, `a locked log: exit ${ended.code} ${ended.stderr}`);
    },
  },
  "the driver is killed": {
    async strike({ going }) {
      going.child.kill("SIGKILL");
      return undefined;
    },
  },
  "the driver is stopped for longer than its lease": {
    async strike({ going, run, home, demand }) {
      await stopBetweenWrites(going, join(home, "log.db"));
      await delay(LEASE_MS);
      const second = await cli.run(["resume", "--json", run], { home });
      demand(second.code === 0, `taken over: exit ${second.code} ${second.stderr}${second.text.slice(-300)}`);
      going.child.kill("SIGCONT");
      return (ended) => {
        demand(ended.code === 123, `the driver that was taken over from: exit ${ended.code} ${ended.text.slice(-300)}`);
        demand(ended.text.includes("superseded"), `it does not say so: ${ended.text.slice(-300)}`);
      };
    },
  },
  "the guest is killed": {
    callsMayFail: true,
    async strike({ home }) {
      const [sandbox] = cli.sandboxes(home);
      const pid = sandbox === undefined ? undefined : processOne(sandbox);
      if (pid !== undefined) process.kill(pid, "SIGKILL");
      return undefined;
    },
  },
  "the sandbox is removed": {
    callsMayFail: true,
    async strike({ home, demand }) {
      const [sandbox] = cli.sandboxes(home);
      if (sandbox === undefined) return undefined;
      const removed = await cli.run(["sandbox", "rm", sandbox, "--yes"], { home });
      // The run may have ended with its sandbox.
      demand(removed.code === 0 || removed.stderr.includes("no sandbox"), `sandbox rm: ${removed.stderr}`);
      return undefined;
    },
  },
  "several stop it at once": {
    callsMayFail: true,
    async strike(round) {
      const { run, home, going, random, demand } = round;
      // Sometimes without a driver.
      if (random.chance(0.5)) going.child.kill("SIGKILL");
      const stops = await Promise.all(Array.from({ length: 4 }, () => cli.run(["stop", run], { home })));
      // All of them may be too late, but they must agree.
      const late = stops.filter((stop) => stop.stderr.includes("has ended (done)"));
      if (late.length < stops.length) round.reason = "cancelled";
      for (const stop of stops) demand(stop.code === 0 || late.length === stops.length, `stop: exit ${stop.code} ${stop.stderr}`);
      return undefined;
    },
  },
  "several answer at once": {
    asks: true,
    callsMayFail: true,
    async strike({ run, home, going, demand }) {
      await going.event("permission.asked");
      const answers = await Promise.all(
        ["allow", "deny", "allow"].map((answer) => cli.run(["answer", run, answer, "--no-resume"], { home })),
      );
      demand(answers.filter((answer) => answer.code === 0).length === 1, `answers: ${answers.map((answer) => answer.stderr).join()}`);
      return undefined;
    },
  },
  "the disk is full": {
    smallDisk: true,
    callsMayFail: true,
    async strike({ home, random }) {
      const filler = join(home, "filler");
      try {
        writeFileSync(filler, Buffer.alloc(64 * 1024 * 1024));
      } catch {
        // The write fails when the disk is full, as intended.
      }
      await delay(random.between(200, 2_000));
      rmSync(filler);
      return undefined;
    },
  },
});

/** Stops a process, but not while it writes to the log: then it would block all others and keep its lease. */
async function stopBetweenWrites({ child }: Going, log: string): Promise<void> {
  for (;;) {
    child.kill("SIGSTOP");
    const stat = `/proc/${child.pid}/stat`;
    // The process may have ended before the signal.
    await vi.waitFor(() => expect(existsSync(stat) ? readFileSync(stat, "utf8") : ") Z ").toMatch(/\) [TZ] /), {
      timeout: 60_000,
      interval: 1,
    });
    if (lockHolder(log) !== child.pid) return;
    child.kill("SIGCONT");
    await delay(5);
  }
}
