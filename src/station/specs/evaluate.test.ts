import { describe, expect, test } from "vitest";
import type { SpecData } from "../../contract/spec/spec.ts";
import { coverage } from "./coverage.ts";
import { earsForm } from "./ears.ts";
import { evaluate } from "./evaluate.ts";
import { evaluators } from "./evaluators.ts";
import { judgeOutput } from "./phase-output.ts";
import { phaseTask, workTask } from "./phase-task.ts";
import { specDiff, specMarkdown } from "./spec-markdown.ts";
import { taskGraph } from "./task-graph.ts";
import { goodData } from "./testing-specs.ts";

const phasesWritten = Object.keys(evaluators) as (keyof typeof evaluators)[];

test.each([
  ["The parser shall reject an empty file.", "ubiquitous"],
  ["When a file is empty, the parser shall say so.", "event"],
  ["While it is offline, the client shall keep its messages.", "state"],
  ["Where colours are on, the printer shall use them.", "option"],
  ["If the disk is full, then the writer shall keep the old file.", "unwanted"],
  ["While it is offline, when a key is pressed, the client shall say so.", "complex"],
  ["When a, b or c is given, the parser shall take it.", "event"],
  ["If the disk is full, the writer shall keep the old file.", null],
  ["The parser should reject an empty file.", null],
  ["The parser shall .", null],
  ["it shall work", null],
  ["Sometimes, the parser shall rest.", null],
  ["", null],
])("the EARS form of %j is %s", (statement, form) => {
  expect(earsForm(statement)).toBe(form);
});

describe("the task graph", () => {
  const task = (id: string, dependsOn: string[] = [], hours = 1) => ({ id, dependsOn, hours });

  test("has waves and a critical path", () => {
    const { waves, criticalPath, criticalHours, problems } = taskGraph([
      task("C", ["A", "B"]),
      task("A", [], 3),
      task("B"),
      task("D", ["B"]),
    ]);
    expect(problems).toEqual([]);
    expect(waves).toEqual([
      ["A", "B"],
      ["C", "D"],
    ]);
    expect({ criticalPath, criticalHours }).toEqual({ criticalPath: ["A", "C"], criticalHours: 4 });
  });

  test.each([
    ["wait for each other", [task("A", ["C"]), task("B", ["A"]), task("C", ["B"])], "tasks wait for each other: A → C → B → A"],
    ["wait for themselves", [task("A", ["A"])], "tasks wait for each other: A → A"],
    ["wait for what is not there", [task("A", ["X"])], "A waits for X, which does not exist"],
    ["have the same id", [task("A"), task("A")], "two tasks have the id A"],
  ])("rejects tasks that %s", (_, tasks, problem) => {
    expect(taskGraph(tasks).problems).toEqual([problem]);
  });
});

describe("evaluators", () => {
  test.each(phasesWritten)("of %s have weights that add up to 1, and accept good data", (phase) => {
    const { checks } = evaluators[phase];
    expect(checks.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1);
    expect(evaluate(phase, goodData)).toMatchObject({ passed: true, score: 1, threshold: 0.7 });
  });

  /** For each check, data that fails only this check. */
  const broken: Record<string, Partial<SpecData>> = {
    "explore summary": { explore: { ...goodData.explore, summary: "x".repeat(50) } },
    "explore key-files": { explore: { ...goodData.explore, keyFiles: goodData.explore.keyFiles.slice(0, 2) } },
    "explore scope": { explore: { ...goodData.explore, scope: { inside: [], outside: [] } } },
    "prd problem": { prd: { ...goodData.prd, problem: "none" } },
    "prd story-ids": { prd: { ...goodData.prd, stories: goodData.prd.stories.map((story) => ({ ...story, id: "US-001" })) } },
    "prd metrics": { prd: { ...goodData.prd, metrics: [] } },
    "requirements ids": withRequirements((each) => ({ ...each, id: each.id.replace("REQ", "R") })),
    "requirements ears": withRequirements((each) => ({ ...each, statement: "It works" })),
    "requirements criteria": withRequirements((each) => ({ ...each, criteria: each.criteria.slice(0, 1) })),
    "design overview": { design: { ...goodData.design, overview: "Short." } },
    "design components": { design: { ...goodData.design, components: [] } },
    "design api": { design: { ...goodData.design, api: "" } },
    "design data": { design: { ...goodData.design, data: "" } },
    "design security": { design: { ...goodData.design, security: "" } },
    "tasks ids": withTasks((each) => ({ ...each, id: "TASK-001", dependsOn: [] })),
    "tasks graph": withTasks((each) => ({ ...each, dependsOn: ["TASK-001", "TASK-002"] })),
    "tasks hours": withTasks((each) => ({ ...each, hours: 5 })),
    "tasks requirements": withTasks((each) => ({ ...each, requirements: [] })),
    "tasks critical-path": { tasks: { ...goodData.tasks, criticalPath: ["TASK-001"] } },
    "sync matrix": { sync: { ...goodData.sync, matrix: goodData.sync.matrix.slice(0, 1) } },
    "sync traceability": { sync: { ...goodData.sync, matrix: goodData.sync.matrix.map((row) => ({ ...row, tasks: ["TASK-999"] })) } },
    "sync ready": { sync: { ...goodData.sync, ready: false } },
  };

  test.each(Object.keys(broken))("report a failed check with feedback: %s", (name) => {
    const [phase, check] = name.split(" ") as [keyof typeof evaluators, string];
    const judged = evaluate(phase, { ...goodData, ...broken[name] });
    const result = judged.checks.find((each) => each.check === check);
    expect(result?.score).toBeLessThan(1);
    expect(result?.feedback).not.toBe("");
    expect(judged.score).toBeLessThan(1);
  });

  test("fail an attempt if a mandatory check fails, whatever its score", () => {
    const { passed, score } = evaluate("sync", { ...goodData, ...broken["sync ready"] });
    expect({ passed, score }).toEqual({ passed: false, score: 0.7 });
    expect(evaluate("tasks", { ...goodData, ...broken["tasks graph"] }).passed).toBe(false);
  });

  test("fail attempts below the threshold and accept those above it", () => {
    expect(evaluate("requirements", { ...goodData, ...broken["requirements ears"] })).toMatchObject({ passed: false, score: 0.65 });
    expect(evaluate("design", { ...goodData, ...broken["design security"] })).toMatchObject({ passed: true, score: 0.8 });
  });
});

function withRequirements(
  change: (each: (typeof goodData.requirements.requirements)[number]) => (typeof goodData.requirements.requirements)[number],
) {
  return { requirements: { requirements: goodData.requirements.requirements.map(change) } };
}

function withTasks(change: (each: (typeof goodData.tasks.tasks)[number]) => (typeof goodData.tasks.tasks)[number]) {
  return { tasks: { ...goodData.tasks, tasks: goodData.tasks.tasks.map(change) } };
}

describe("an agent's output", () => {
  const json = JSON.stringify(goodData.explore);

  test.each([
    ["alone", json],
    ["in a block", `Here it is.\n\n\`\`\`json\n${json}\n\`\`\``],
    ["in the last of several blocks", `\`\`\`json\n{"a": 1}\n\`\`\`\nand\n\`\`\`\n${json}\n\`\`\`\n`],
  ])("is parsed %s", (_, text) => {
    expect(judgeOutput("explore", text, {})).toMatchObject({ judgement: { passed: true }, data: goodData.explore });
  });

  test.each([
    ["nonsense", "I am done.", "no JSON"],
    ["nothing", "", "no JSON"],
    ["a bare list", "[1, 2]", "not match the schema"],
    ["unknown fields", JSON.stringify({ ...goodData.explore, command: "rm -rf /" }), 'no setting "command"'],
    ["a path into objects", `{"__proto__": {"summary": "x"}}`, "not match the schema"],
    ["more than is taken", JSON.stringify({ ...goodData.explore, summary: "x".repeat(300_000) }), "longer than 256 KiB"],
  ])("is rejected if it is %s", (_, text, why) => {
    const { judgement, data } = judgeOutput("explore", text, {});
    expect(data).toBeNull();
    expect(judgement).toMatchObject({ passed: false, score: 0, checks: [{ check: "format", feedback: expect.stringContaining(why) }] });
  });
});

test("a phase's task contains idea, earlier phases, feedback and expectations", () => {
  const task = phaseTask({ phase: "design", attempt: 2, idea: "Count words.", data: goodData, feedback: ["say what is kept"] });
  expect(task).toContain("Spec phase: design (attempt 2)");
  for (const part of ["> Count words.", "REQ-001", "- say what is kept", "`security` says", '"overview"']) expect(task).toContain(part);
  // It does not mention later phases.
  expect(task).not.toContain("TASK-001");
});

test("a task's prompt contains its own requirements and no others", () => {
  const [task] = goodData.tasks.tasks;
  const text = workTask({ task: task as NonNullable<typeof task>, idea: "Count words.", data: goodData });
  expect(text).toContain("Spec task: TASK-001");
  expect(text).toContain("REQ-001");
  expect(text).not.toContain("an empty file gives 0");
});

test("coverage lists each requirement's tasks and the files they really changed", () => {
  const rows = coverage(goodData, [
    { task: "TASK-001", isDone: true, changed: ["src/count.ts"] },
    { task: "TASK-002", isDone: true, changed: [] },
  ]);
  expect(rows.map(({ requirement, tasks, changes, state }) => ({ requirement, tasks, changes, state }))).toEqual([
    { requirement: "REQ-001", tasks: ["TASK-001"], changes: [{ task: "TASK-001", path: "src/count.ts" }], state: "done" },
    { requirement: "REQ-002", tasks: ["TASK-002"], changes: [], state: "unchanged" },
  ]);
  expect(coverage(goodData, []).map(({ state }) => state)).toEqual(["planned", "planned"]);
  expect(coverage({ requirements: goodData.requirements }, []).map(({ state }) => state)).toEqual(["missing", "missing"]);
});

test("exports a spec as Markdown, and diffs only what differs", () => {
  const before = specMarkdown({ title: "Words", idea: "Count words.", data: goodData });
  for (const part of ["# Words", "### REQ-001 (US-001)", "- [ ] ", "### TASK-002", "| REQ-002 |"]) expect(before).toContain(part);
  const [first, ...rest] = goodData.requirements.requirements;
  const changed = { requirements: { requirements: [{ ...first, statement: "The counter shall count lines." }, ...rest] } } as SpecData;
  const after = specMarkdown({ title: "Words", idea: "Count words.", data: { ...goodData, ...changed } });
  const diff = specDiff(before, after).split("\n");
  expect(diff.filter((each) => /^[+-]/.test(each))).toEqual([
    "-When a text is given, the counter shall say how many words it has.",
    "+The counter shall count lines.",
  ]);
  expect(diff).toContain("@@");
  expect(diff.length).toBeLessThan(15);
  expect(specDiff(before, before)).toBe("");
});
