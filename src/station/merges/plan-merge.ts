import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Changes } from "../../workspace/change.ts";
import { baseFiles, changedFiles } from "./file-tree.ts";
import { openGit, sideName } from "./git-inside.ts";

export interface Clash {
  sessions: [string, string];
  files: number;
}

/** Decides the order in which to merge sessions: git tries each pair of them in a temporary sandbox. */
export async function planMerge(
  ids: readonly string[],
  all: readonly Changes[],
  runtime: Runtime,
): Promise<{ order: string[]; clashes: Clash[] }> {
  const config = SandboxConfig.parse({ template: { kind: "host" }, workspace: { kind: "empty" } });
  await using sandbox = await runtime.create(config);
  const git = await openGit(sandbox);
  await git.load(baseFiles(all), Object.fromEntries(all.map((changes, index) => [sideName(index), changedFiles(changes)])));
  const clashes: Clash[] = [];
  for (const [index, a] of ids.entries()) {
    const ours = await git.commitOf(sideName(index));
    for (const [further, b] of ids.entries()) {
      if (further <= index) continue;
      const files = (await git.merge(ours, sideName(further))).conflicted.size;
      if (files > 0) clashes.push({ sessions: [a, b], files });
    }
  }
  return { order: leastConflictsFirst(ids, clashes), clashes };
}

/**
 * Starts with the session that conflicts least with all others, then repeatedly takes the one that conflicts least with
 * those already chosen; equal ones keep their order. So compatible sessions are merged before anything has to be
 * resolved.
 */
export function leastConflictsFirst(ids: readonly string[], clashes: readonly Clash[]): string[] {
  const between = (a: string, b: string) =>
    clashes.find(({ sessions: [first, second] }) => (first === a && second === b) || (first === b && second === a))?.files ?? 0;
  const total = (id: string, others: readonly string[]) => others.reduce((sum, other) => sum + (other === id ? 0 : between(id, other)), 0);
  const left = [...ids];
  const order: string[] = [];
  while (left.length > 0) {
    const cost = (id: string) => [order.length === 0 ? 0 : total(id, order), total(id, left)] as const;
    const best = left.reduce((chosen, id) => {
      const [[a, b], [c, d]] = [cost(chosen), cost(id)];
      return c < a || (c === a && d < b) ? id : chosen;
    });
    order.push(best);
    left.splice(left.indexOf(best), 1);
  }
  return order;
}
