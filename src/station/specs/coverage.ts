import type { CoverageRow, SpecData } from "../../contract/spec.ts";

export interface DoneTask {
  task: string;
  isDone: boolean;
  /** What its run really changed. */
  changed: readonly string[];
}

/** Requirement by requirement: which tasks are for it, and which files they changed, as the sessions say. */
export function coverage(spec: Pick<SpecData, "requirements" | "tasks">, done: readonly DoneTask[]): CoverageRow[] {
  const tasks = spec.tasks?.tasks ?? [];
  return (spec.requirements?.requirements ?? []).map(({ id, statement }) => {
    const own = tasks.filter(({ requirements }) => requirements.includes(id)).map((task) => task.id);
    const results = done.filter(({ task }) => own.includes(task));
    const changes = results.flatMap(({ task, changed }) => changed.map((path) => ({ task, path })));
    const allDone = own.every((task) => results.some((result) => result.task === task && result.isDone));
    const state = own.length === 0 ? "missing" : !allDone ? "planned" : changes.length === 0 ? "unchanged" : "done";
    return { requirement: id, statement, tasks: own, changes, state };
  });
}
