import type { SpecTask } from "../../contract/spec/spec.ts";

export interface TaskGraph {
  /** Duplicate ids, unknown dependencies and cycles. */
  problems: string[];
  /** Sets of tasks that depend only on earlier waves. All tasks of a wave can run at the same time. */
  waves: string[][];
  /** The longest chain, by hours. */
  criticalPath: string[];
  criticalHours: number;
}

export function taskGraph(tasks: readonly Pick<SpecTask, "id" | "dependsOn" | "hours">[]): TaskGraph {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const problems = [...duplicatesIn(tasks.map(({ id }) => id)).map((id) => `two tasks have the id ${id}`), ...unknown(tasks, byId)];
  const waves: string[][] = [];
  const done = new Set<string>();
  let left = [...byId.values()];
  while (left.length > 0) {
    // A missing task is reported as its own problem, and blocks nothing here.
    const ready = left.filter(({ dependsOn }) => dependsOn.every((id) => done.has(id) || !byId.has(id)));
    if (ready.length === 0) break;
    waves.push(ready.map(({ id }) => id));
    for (const { id } of ready) done.add(id);
    left = left.filter(({ id }) => !done.has(id));
  }
  const cycle = left.length === 0 ? null : cycleAmong(left);
  if (cycle !== null) problems.push(`tasks wait for each other: ${cycle.join(" → ")}`);
  return { problems, waves, ...longest(waves.flat(), byId) };
}

function duplicatesIn(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
}

function unknown(tasks: readonly Pick<SpecTask, "id" | "dependsOn">[], byId: ReadonlyMap<string, unknown>): string[] {
  return tasks.flatMap(({ id, dependsOn }) =>
    dependsOn.filter((other) => !byId.has(other)).map((other) => `${id} waits for ${other}, which does not exist`),
  );
}

/**
 * Returns one cycle, from a task back to itself. A cycle exists, because every remaining task waits for another
 * remaining task.
 */
function cycleAmong(left: readonly Pick<SpecTask, "id" | "dependsOn">[]): string[] {
  const byId = new Map(left.map((task) => [task.id, task]));
  const path: string[] = [];
  let at = left[0]?.id;
  while (at !== undefined && !path.includes(at)) {
    path.push(at);
    at = byId.get(at)?.dependsOn.find((id) => byId.has(id));
  }
  return at === undefined ? path : [...path.slice(path.indexOf(at)), at];
}

function longest(
  ordered: readonly string[],
  byId: ReadonlyMap<string, Pick<SpecTask, "dependsOn" | "hours">>,
): Pick<TaskGraph, "criticalPath" | "criticalHours"> {
  const ways = new Map<string, { path: string[]; hours: number }>();
  const longer = (a: { path: string[]; hours: number }, b: { path: string[]; hours: number }) => (b.hours > a.hours ? b : a);
  for (const id of ordered) {
    const task = byId.get(id);
    const before = (task?.dependsOn ?? []).flatMap((other) => ways.get(other) ?? []).reduce(longer, { path: [], hours: 0 });
    ways.set(id, { path: [...before.path, id], hours: before.hours + (task?.hours ?? 0) });
  }
  const { path, hours } = [...ways.values()].reduce(longer, { path: [], hours: 0 });
  return { criticalPath: path, criticalHours: hours };
}
