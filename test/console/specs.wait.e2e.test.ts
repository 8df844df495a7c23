import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { heading, long, node, patient, stationOf } from "../support/console-work.ts";

const console = useConsole();
const { openPage, base } = console;
const station = () => stationOf(console);
const examples = join(import.meta.dirname, "..", "..", "examples");

test("a spec gate shows what is wrong with each attempt, and can be approved", long, async () => {
  const project = join(base(), "counting");
  await cp(join(examples, "spec", "project"), project, { recursive: true });
  const { spec } = await station().specs.create({
    idea: "Count words and lines, too",
    name: "words",
    source: { kind: "folder", path: project },
    runs: { model: `scripted:${join(examples, "spec", "script.yaml")}` },
  });
  const { page } = await openPage("/specs/words");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const gate = page.getByRole("region", { name: "Approve requirements, version 3?" });
  await gate.waitFor(patient);
  const requirements = page.getByRole("article", { name: "Requirements" });
  await requirements.getByText("REQ-001").first().waitFor();
  await requirements.getByText("below threshold").waitFor();
  expect(await requirements.getByRole("link", { name: /^run_/ }).count()).toBe(2);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-gate");
  await gate.getByRole("button", { name: "Reject" }).click();
  await gate.getByText("Say what has to change.").waitFor();
  await gate.getByLabel("Comment").fill("as I thought");
  await gate.getByRole("button", { name: "Approve" }).click();
  await page
    .getByRole("list", { name: "Phases" })
    .getByRole("button", { name: /^Requirements/ })
    .click();
  await requirements.getByText("as I thought").waitFor();
  await page.getByRole("region", { name: "Approve design, version 4?" }).waitFor(patient);
  for (const [tab, label] of [
    ["Document", "The spec as a document"],
    ["Versions", "Versions"],
  ] as const) {
    await page.getByRole("navigation", { name: "Spec sections" }).getByRole("link", { name: tab }).click();
    await page.getByLabel(label, { exact: true }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, `spec-${tab.toLowerCase()}`);
  }
  for (const [tab, text] of [
    ["Coverage", "REQ-001"],
    ["Tasks", "No tasks yet"],
    ["Events", "spec.approved"],
  ] as const) {
    await page.getByRole("navigation", { name: "Spec sections" }).getByRole("link", { name: tab }).click();
    await page.getByText(text).first().waitFor();
    expect(await barriers(page)).toEqual([]);
  }
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel spec" }).click();
  await heading(page, /cancelled/).waitFor();
  expect(await station().specs.get(spec)).toMatchObject({
    status: "cancelled",
    decisions: [{ phase: "requirements", version: 3, approved: true, text: "as I thought" }],
  });
});

/** Returns the example's scripted model, changed to make the last task depend on both others. */
async function specScript(): Promise<string> {
  const text = await readFile(join(examples, "spec", "script.yaml"), "utf8");
  const free = `"dependsOn": [],`;
  const [before, after] = [text.slice(0, text.lastIndexOf(free)), text.slice(text.lastIndexOf(free) + free.length)];
  const path = join(base(), "spec-script.yaml");
  const longest = (rest: string) => rest.replace(/("criticalPath": \[\s*"TASK-001")/, `$1, "TASK-003"`);
  await writeFile(path, `${before}"dependsOn": ["TASK-001", "TASK-002"],${longest(after)}`);
  return `scripted:${path}`;
}

test("a spec's task graph shows dependencies, and updates as tasks finish", long, async () => {
  const project = join(base(), "graph");
  await cp(join(examples, "spec", "project"), project, { recursive: true });
  await station().specs.create({
    ...{ idea: "Count words and lines, too", name: "graph", gates: [] },
    source: { kind: "folder", path: project },
    runs: { model: await specScript() },
  });
  const { page } = await openPage("/specs/graph?tab=tasks");
  await page.getByText("No tasks yet").waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await node(page, "TASK-001", "done").waitFor(patient);
  await node(page, "TASK-003", "done.*after TASK-001, TASK-002").waitFor(patient);
  const edges = page.locator("[data-edge]");
  expect(await edges.evaluateAll((found) => found.map((each) => each.getAttribute("data-edge")).sort())).toEqual([
    "TASK-001 TASK-003",
    "TASK-002 TASK-003",
  ]);
  expect(await page.locator('[data-edge="TASK-001 TASK-003"]').getAttribute("data-state")).toBe("completed");
  await node(page, "TASK-001", "done").focus();
  await page.keyboard.press("Enter");
  const side = page.getByRole("complementary", { name: "Task TASK-001" });
  await side.getByText("words.sh", { exact: true }).waitFor();
  expect(await side.getByRole("link", { name: /^run_/ }).getAttribute("href")).toMatch(/^\/runs\/run_/);
  await heading(page, /done/).waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-tasks");
  await page.setViewportSize({ width: 390, height: 844 });
  const list = page.getByRole("list", { name: "Tasks" });
  await list.getByText("after TASK-001, TASK-002").waitFor();
  await list.getByRole("region", { name: "Task TASK-001" }).getByText("words.sh", { exact: true }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-tasks-phone");
});
