import type { HealthCondition } from "../../contract/health/health-event.ts";
import type { HealthLevel } from "../../contract/health/health-level.ts";
import type { HealthLog } from "./health-log.ts";
import { type HealthSettings, MISSES_MAX } from "./health-settings.ts";
import type { Watched } from "./watched-subject.ts";

export interface HealthWatch extends AsyncDisposable {
  /**
   * Checks everything that is watched. Silence is counted in ticks, so that subjects are not blamed for the time in
   * which the station itself or the machine was suspended. Resolves when all findings are recorded; restarts continue
   * in the background.
   */
  tick(): Promise<void>;
  /** Resolves when no restart is in progress. */
  waitForRestarts(): Promise<void>;
}

export interface HealthWatchOptions {
  settings: HealthSettings;
  /** The time between two ticks, which the caller makes. */
  tickMs: number;
  log: HealthLog;
  /** Returns everything to watch, by key. Subjects that no longer exist are released. */
  find: () => Promise<ReadonlyMap<string, () => Watched>>;
  /** How often `find` is called. */
  findEveryTicks: number;
  /** Called for each change of level, in addition to the log. */
  onLevel: (watched: Watched, change: { level: HealthLevel; condition: HealthCondition }) => Promise<void>;
  /** Restarts an unresponsive subject. Resolves with false if that is not allowed now. Never rejects. */
  restart: (watched: Watched, about: { condition: HealthCondition; signal: AbortSignal }) => Promise<boolean>;
  onDefect: (error: unknown) => void;
  /** A monotonic clock. */
  now?: () => number;
}

interface Seen {
  watched: Watched;
  sign: unknown;
  silentTicks: number;
  level: HealthLevel;
  judging: Promise<void> | null;
  restarting: Promise<unknown> | null;
}

/** A tick that is this many times too late only shows that the station itself was suspended. */
const GAP_TICKS = 3;
const levels: readonly HealthLevel[] = ["ok", "late", "degraded", "unresponsive"];

export function createHealthWatch(options: HealthWatchOptions): HealthWatch {
  const { settings, tickMs, onDefect } = options;
  const now = options.now ?? (() => performance.now());
  const all = new Map<string, Seen>();
  const ending = new AbortController();
  let ticks = 0;
  let lastTickMs: number | null = null;
  let ticking: Promise<void> | null = null;

  const find = async () => {
    const found = await options.find();
    for (const [key, seen] of all) {
      if (found.has(key) || seen.restarting !== null) continue;
      all.delete(key);
      await closeWatched(seen.watched, onDefect);
    }
    for (const [key, watch] of found) {
      if (all.has(key)) continue;
      const watched = watch();
      // Starts from the level that an earlier station recorded, and counts silence from zero.
      const { level } = await options.log.facts(watched);
      all.set(key, { watched, sign: watched.sign(), silentTicks: 0, level, judging: null, restarting: null });
    }
  };
  const judge = async (seen: Seen): Promise<void> => {
    const { watched } = seen;
    const periodMs = (watched.isBusy() ? settings.runningTtlMs : settings.idleTtlMs) / MISSES_MAX;
    const missed = Math.min(Math.floor((seen.silentTicks * tickMs) / periodMs), MISSES_MAX);
    // Prods the subject halfway to a miss, so that one that is merely quiet responds in time.
    if (seen.silentTicks * tickMs * 2 >= periodMs) watched.prod();
    if (missed === 0 && seen.silentTicks > 0) return;
    const { condition } = missed === 0 ? { condition: "running" as const } : await watched.look();
    // A frozen sandbox is healthy: it can be thawed.
    if (condition === "frozen") seen.silentTicks = 0;
    const misses = condition === "frozen" ? 0 : missed;
    const level = levels[misses] as HealthLevel;
    if (level !== seen.level) {
      await options.log.append(watched, { type: "health.changed", data: { subject: watched.subject, level, misses, condition } });
      seen.level = level;
      await options.onLevel(watched, { level, condition });
    }
    if (level === "unresponsive" && settings.restart && watched.restart !== null) beginRestart(seen, condition);
  };
  const beginRestart = (seen: Seen, condition: HealthCondition) => {
    seen.restarting = options
      .restart(seen.watched, { condition, signal: ending.signal })
      .then((done) => {
        // The subject gets the full time again to show that it is alive.
        if (done) seen.silentTicks = 0;
      })
      .catch(onDefect)
      .finally(() => {
        seen.restarting = null;
      });
  };
  const look = (seen: Seen, counts: boolean): Promise<void> | null => {
    // A slow check must finish before the next one.
    if (seen.restarting !== null || seen.judging !== null) return null;
    seen.watched.attend?.();
    const sign = seen.watched.sign();
    const isQuiet = sign === seen.sign && seen.watched.excuse() === null;
    seen.sign = sign;
    seen.silentTicks = isQuiet ? seen.silentTicks + (counts ? 1 : 0) : 0;
    if (!isQuiet && seen.level === "ok") return null;
    seen.judging = judge(seen)
      .catch(onDefect)
      .finally(() => {
        seen.judging = null;
      });
    return seen.judging;
  };
  const tickOnce = async () => {
    const atMs = now();
    const counts = lastTickMs !== null && atMs - lastTickMs <= GAP_TICKS * tickMs;
    lastTickMs = atMs;
    if (ticks % options.findEveryTicks === 0) await find().catch(onDefect);
    ticks += 1;
    await Promise.all([...all.values()].map((seen) => look(seen, counts)));
  };
  return {
    tick() {
      ticking ??= tickOnce().finally(() => {
        ticking = null;
      });
      return ticking;
    },
    async waitForRestarts() {
      await Promise.all([...all.values()].map(({ restarting }) => restarting));
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await ticking;
      await Promise.all([...all.values()].flatMap(({ judging, restarting }) => [judging, restarting]));
      for (const { watched } of all.values()) await closeWatched(watched, onDefect);
      all.clear();
    },
  };
}

async function closeWatched(watched: Watched, onDefect: (error: unknown) => void): Promise<void> {
  try {
    await watched[Symbol.asyncDispose]();
  } catch (error) {
    onDefect(error);
  }
}
