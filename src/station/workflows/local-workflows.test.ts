import { expect, test } from "vitest";
import { evaluateHere } from "../../workflow/expressions/evaluate.ts";
import { createLocalWorkflows, type WorkflowJobs } from "./local-workflows.ts";

test("removes every workflow within another one, page by page", async () => {
  const parts = ["wf_a", "wf_b", "wf_c"];
  const removed: string[] = [];
  const jobs = {
    get: async (id: string) => ({ id, finish: "completed", damage: null }),
    // Two to a page.
    async list({ parent, cursor }: { parent: string; cursor?: string }) {
      if (parent !== "workflow/wf_root") return { items: [], next: null };
      const items = parts.slice(cursor === undefined ? 0 : 2, cursor === undefined ? 2 : 4).map((id) => ({ id }));
      return { items, next: cursor === undefined ? "2" : null };
    },
    remove: async (id: string) => void removed.push(id),
  } as unknown as WorkflowJobs;
  await createLocalWorkflows(jobs, { evaluate: evaluateHere, check: async () => [] }).remove("wf_root");
  expect(removed).toEqual([...parts, "wf_root"]);
});
