import type { HealthCondition } from "../../contract/health-event.ts";
import type { HealthLevel } from "../../contract/health-level.ts";
import type { HealthLog } from "./health-log.ts";
import { type HealthSettings, MISSES_MAX } from "./health-settings.ts";
import type { Watched } from "./watched.ts";

export interface HealthWatch extends AsyncDisposable {
  /**
   * One look at everything that is watched. Time is counted in these: what stood still with the station, because it was
   * stopped or the machine slept, is not blamed for it. Resolves when everything that it found is written down;
   * restarts go on beside.
   */
  tick(): Promise<void>;
  /** Resolves when no restart is under way. */
  settled(): Promise<void>;
}

export interface HealthWatchOptions {
  settings: HealthSettings;
  /** Between two ticks, as the caller makes them. */
  tickMs: number;
  log: HealthLog;
  /** Everything that is there to be watched, by a key of its own. What is not there any more is let go. */
  find: () => Promise<ReadonlyMap<string, () => Watched>>;
  /** How often that is looked for. */
  findEveryTicks: number;
  /** Told of each change, besides the log. */
  onLevel: (watched: Watched, change: { level: HealthLevel; condition: HealthCondition }) => Promise<void>;
  /** Sees to one that is unresponsive; false when it is too early to. Never rejects. */
  restart: (watched: Watched, about: { condition: HealthCondition; signal: AbortSignal }) => Promise<boolean>;
  onDefect: (error: unknown) => void;
  /** By a clock that nobody sets. */
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

/** A tick that comes this many times too late says only that the station itself stood still. */
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
      await closed(seen.watched, onDefect);
    }
    for (const [key, watch] of found) {
      if (all.has(key)) continue;
      const watched = watch();
      // What an earlier station saw of it: this one begins where that one stopped telling, and counts anew.
      const { level } = await options.log.facts(watched);
      all.set(key, { watched, sign: watched.sign(), silentTicks: 0, level, judging: null, restarting: null });
    }
  };
  const judge = async (seen: Seen): Promise<void> => {
    const { watched } = seen;
    const periodMs = (watched.isBusy() ? settings.runningTtlMs : settings.idleTtlMs) / MISSES_MAX;
    const missed = Math.min(Math.floor((seen.silentTicks * tickMs) / periodMs), MISSES_MAX);
    // Half-way to a miss: what is only quiet answers, and nothing was missed.
    if (seen.silentTicks * tickMs * 2 >= periodMs) watched.prod();
    if (missed === 0 && seen.silentTicks > 0) return;
    const { condition } = missed === 0 ? { condition: "running" as const } : await watched.look();
    // Whoever froze it can thaw it: that is no illness.
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
        // It has as long as before to show that it lives.
        if (done) seen.silentTicks = 0;
      })
      .catch(onDefect)
      .finally(() => {
        seen.restarting = null;
      });
  };
  const look = (seen: Seen, counts: boolean): Promise<void> | null => {
    // Whoever is slow to be judged is judged when that is done.
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
    async settled() {
      await Promise.all([...all.values()].map(({ restarting }) => restarting));
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await ticking;
      await Promise.all([...all.values()].flatMap(({ judging, restarting }) => [judging, restarting]));
      for (const { watched } of all.values()) await closed(watched, onDefect);
      all.clear();
    },
  };
}

async function closed(watched: Watched, onDefect: (error: unknown) => void): Promise<void> {
  try {
    await watched[Symbol.asyncDispose]();
  } catch (error) {
    onDefect(error);
  }
}
