import { expect, test } from "vitest";
import { createWorkbench } from "../../agent/tools/testing-tools.ts";
import { AgentDefinition } from "../../contract/agent/agent.ts";
import { loadRules } from "./rules.ts";

const agent = (memory: string[], skills: string[] = []) => AgentDefinition.parse({ name: "a", system: "s", memory, skills });

test("includes a repository's instructions, truncated if they are too long", async () => {
  await using bench = await createWorkbench();
  expect(await loadRules(bench.sandbox, agent(["AGENTS.md"]))).toBe("");
  await bench.put("AGENTS.md", "Use tabs.\n");
  await bench.put("docs/STYLE.md", "x".repeat(100_000));
  await bench.put("binary.md", Buffer.from([0, 1]));
  const rules = await loadRules(bench.sandbox, agent(["AGENTS.md", "docs/STYLE.md", "binary.md", "docs"]));
  expect(rules).toMatch(/^Instructions of this repository, from AGENTS\.md:\n\nUse tabs\./);
  expect(rules).toContain("from docs/STYLE.md");
  expect(rules.length).toBeLessThan(45_000);
  expect(rules).not.toContain("binary.md");
});

test("lists skills with name, purpose and path", async () => {
  await using bench = await createWorkbench();
  await bench.put(
    "skills/release/SKILL.md",
    "---\nname: make-a-release\ndescription: How releases are made here.\n---\nLong text that is read when it is needed.",
  );
  await bench.put("skills/plain/SKILL.md", "No frontmatter.");
  await bench.put("skills/other.md", "no skill");
  const rules = await loadRules(bench.sandbox, agent([], ["skills", "missing"]));
  expect(rules).toContain("- make-a-release (/workspace/skills/release/SKILL.md): How releases are made here.");
  expect(rules).toContain("- plain (/workspace/skills/plain/SKILL.md): ");
  expect(rules).not.toContain("Long text");
  expect(rules).not.toContain("other.md");
});
