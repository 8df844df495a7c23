import { useSyncExternalStore } from "react";

/** Recent event counts of each run and sandbox, for a small picture of how busy it is. */

const SLOT_MS = 10_000;
const SLOTS = 18;
const KEPT_MAX = 500;

interface Activity {
  /** The time slot of the last count. */
  slot: number;
  counts: readonly number[];
}

const activities = new Map<string, Activity>();
const watchers = new Set<() => void>();
const none: readonly number[] = [];

export function recordActivity(id: string, nowMs: number = Date.now()): void {
  const slot = Math.floor(nowMs / SLOT_MS);
  const counts = [...countsAt(activities.get(id), slot)];
  counts[SLOTS - 1] = (counts[SLOTS - 1] ?? 0) + 1;
  // Reinserted, so that the first entry of the map is the one that was quiet longest.
  activities.delete(id);
  activities.set(id, { slot, counts });
  if (activities.size > KEPT_MAX) activities.delete(activities.keys().next().value ?? "");
  for (const watcher of watchers) watcher();
}

/** Returns the counts of the last three minutes, oldest first; empty if there were no events. */
export function useActivity(id: string): readonly number[] {
  return useSyncExternalStore(watch, () => activities.get(id)?.counts ?? none);
}

let moving: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  moving ??= setInterval(() => moveOn(Date.now()), SLOT_MS);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(moving);
    moving = undefined;
  };
}

/** Shifts all counts to the present, so that pictures of quiet runs flatten. */
export function moveOn(nowMs: number): void {
  const slot = Math.floor(nowMs / SLOT_MS);
  for (const [id, activity] of activities) {
    const counts = countsAt(activity, slot);
    if (counts.every((count) => count === 0)) activities.delete(id);
    else activities.set(id, { slot, counts });
  }
  for (const watcher of watchers) watcher();
}

/** @internal Returns the counts of the hook, for tests, which have no component. */
export function activityOf(id: string): readonly number[] {
  return activities.get(id)?.counts ?? none;
}

function countsAt(activity: Activity | undefined, slot: number): readonly number[] {
  if (activity === undefined) return Array.from({ length: SLOTS }, () => 0);
  const passed = Math.min(SLOTS, Math.max(0, slot - activity.slot));
  return [...activity.counts.slice(passed), ...Array.from({ length: passed }, () => 0)];
}
