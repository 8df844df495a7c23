import type { CoverageRow, SpecData } from "../../contract/spec/spec.ts";

export interface DoneTask {
  task: string;
  isDone: boolean;
  /** The files that its run actually changed. */
  changed: readonly string[];
}

/** Returns for each requirement the tasks that implement it and the files they changed, according to their sessions. */
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
