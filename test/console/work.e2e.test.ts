import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import type { RunView } from "../../src/contract/run-verbs.ts";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const console = useConsole();
const { openPage, base, url, token } = console;
const { script } = scriptedRuns(console);
const station = (): Client => connect({ url: url(), token: token() });
const examples = join(import.meta.dirname, "..", "..", "examples");
const long = { timeout: 600_000 };
/** Sandboxes are started behind what is waited for, on a machine that may be busy. */
const patient = { timeout: 240_000 };

/** Exactly where it is a text: a page of a workflow has "work" in its heading, too. */
const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name, exact: true });
/** A node of the graph, in a state. */
const node = (page: Page, name: string, state: string) => page.getByRole("button", { name: new RegExp(`^${name} .*${state}`) });

test("an empty list says what makes something, of each kind", async () => {
  const { page } = await openPage("/work");
  await page.getByText("caisson workflow run review.yaml --detach").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("navigation", { name: "Kinds of work" }).getByRole("link", { name: "Ships" }).click();
  await page.getByText("No ships yet").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await heading(page, "Runs").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await heading(page, "Work").waitFor();
});

test("what is not there is said to be gone", async () => {
  for (const [path, what] of [
    ["workflows/wf_aaaaaaaaaaaa", "workflow"],
    ["specs/spec_aaaaaaaaaaaa", "spec"],
    ["ships/ship_aaaaaaaaaaaa", "ship"],
    ["merges/mrg_aaaaaaaaaaaa", "merge"],
  ]) {
    const { page } = await openPage(`/${path}`);
    await page.getByRole("heading", { name: `There is no such ${what}` }).waitFor();
    expect(await barriers(page)).toEqual([]);
  }
});

describe("a workflow", () => {
  const definition = {
    name: "release",
    description: "A note is written, checked and agreed to",
    steps: [
      { name: "begin", kind: "signal", signal: "begin" },
      { name: "write", kind: "agent", task: "Write a note." },
      {
        name: "checks",
        kind: "parallel",
        branches: {
          words: [{ name: "count", kind: "command", argv: ["sh", "-c", "echo words"] }],
          lines: [{ name: "lines", kind: "command", argv: ["sh", "-c", "echo '<b>bold</b>'"] }],
        },
      },
      { name: "agree", kind: "approval", text: "May the note\u202e be sent?" },
      { name: "publish", kind: "command", argv: ["cat", "ready.txt"] },
    ],
    output: { said: `\${steps.publish.output.stdout}` },
  };

  test("is seen moving, agreed to, retried after it failed, and removed", long, async () => {
    const folder = join(base(), "release");
    await mkdir(folder);
    const model = await script({ turns: [{ say: "The note is written, says a scripted model." }] });
    const started = await station().workflows.start({ definition, model, source: { kind: "folder", path: folder } } as never);
    const { page } = await openPage("/work");
    const row = page.getByRole("grid", { name: "Work" }).getByRole("row", { name: /release/ });
    await row.getByText("the signal begin").waitFor();
    expect(await barriers(page)).toEqual([]);
    await row.getByText("release", { exact: true }).click();
    await page.waitForURL(new RegExp(started.id));
    await node(page, "begin", "waiting").waitFor();
    await node(page, "publish", "to come").waitFor();
    await page.getByRole("button", { name: "Send a signal" }).click();
    expect(await page.getByLabel("Signal", { exact: true }).inputValue()).toBe("begin");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await node(page, "begin", "done").waitFor();
    await node(page, "write", "done").waitFor(patient);
    await node(page, "lines", "done").waitFor(patient);
    const asks = page.getByRole("region", { name: "agree asks for an approval" });
    await asks.getByText("May the note⟨U+202E⟩ be sent?").waitFor(patient);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "workflow-asks");
    await asks.getByLabel("What you say about it").fill("well said");
    await asks.getByRole("button", { name: "Approve" }).click();
    await node(page, "agree", "done").waitFor();
    await asks.waitFor({ state: "detached" });
    await node(page, "publish", "failed").waitFor(patient);
    await heading(page, /failed/).waitFor();
    await node(page, "agree", "done").click();
    await page.getByText(/: well said$/).waitFor();
    await writeFile(join(folder, "ready.txt"), "it is ready\n");
    await page.getByRole("button", { name: "Retry" }).click();
    await heading(page, /done/).waitFor(patient);
    await node(page, "publish", "done").waitFor();
    await page.getByRole("button", { name: "Back to the workflow" }).click();
    await page.getByRole("region", { name: "Result" }).getByText("it is ready").waitFor();
    await node(page, "write", "done").click();
    const run = page.getByRole("complementary", { name: "The step write" }).getByRole("link", { name: /^run_/ });
    expect(await run.getAttribute("href")).toMatch(/^\/runs\/run_/);
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByText("workflow.retried").waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("link", { name: "Definition" }).click();
    await page.getByRole("region", { name: "Definition" }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await heading(page, "Work").waitFor();
    expect((await station().workflows.list()).items).toEqual([]);
  });

  test("is paused, resumed and cancelled from a phone, a step of it by keys", long, async () => {
    const { id } = await station().workflows.start({
      definition: {
        name: "inner-and-outer",
        steps: [
          {
            name: "sub",
            kind: "workflow",
            definition: { name: "inner", steps: [{ name: "hold", kind: "signal", signal: "go" }] },
          },
        ],
      },
    } as never);
    const { page } = await openPage(`/workflows/${id}`, { phone: true, dark: true });
    await page
      .getByRole("group", { name: "workflow inner" })
      .getByRole("button", { name: /^hold .*waiting/ })
      .waitFor();
    expect(await barriers(page)).toEqual([]);
    await node(page, "sub", "running").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "The step sub" }).getByRole("link", { name: /wf_/ }).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await heading(page, /paused/).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel it" }).click();
    await heading(page, /cancelled/).waitFor();
    await node(page, "sub", "cancelled").waitFor();
    expect(await station().workflows.get(id)).toMatchObject({ finish: "cancelled" });
  });
});

test("a spec's gate says what is wrong with each attempt, and is agreed to in the browser", long, async () => {
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
  const gate = page.getByRole("region", { name: "Do you agree to its requirements, version 3?" });
  await gate.waitFor(patient);
  const requirements = page.getByRole("article", { name: "Requirements" });
  await requirements.getByText("REQ-001").first().waitFor();
  await requirements.getByText("not enough").waitFor();
  expect(await requirements.getByRole("link", { name: /^run_/ }).count()).toBe(2);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-gate");
  await gate.getByRole("button", { name: "Reject" }).click();
  await gate.getByText("Say what has to be different.").waitFor();
  await gate.getByLabel("What you say about it").fill("as I thought");
  await gate.getByRole("button", { name: "Approve" }).click();
  await page
    .getByRole("list", { name: "Phases" })
    .getByRole("button", { name: /^Requirements/ })
    .click();
  await requirements.getByText("as I thought").waitFor();
  await page.getByRole("region", { name: "Do you agree to its design, version 4?" }).waitFor(patient);
  for (const [tab, shown] of [
    ["Document", "The spec as a document"],
    ["Versions", "Versions"],
  ] as const) {
    await page.getByRole("navigation", { name: "Parts of the spec" }).getByRole("link", { name: tab }).click();
    await page.getByLabel(shown, { exact: true }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, `spec-${tab.toLowerCase()}`);
  }
  for (const [tab, shown] of [
    ["Coverage", "REQ-001"],
    ["Tasks", "No tasks yet"],
    ["Events", "spec.approved"],
  ] as const) {
    await page.getByRole("navigation", { name: "Parts of the spec" }).getByRole("link", { name: tab }).click();
    await page.getByText(shown).first().waitFor();
    expect(await barriers(page)).toEqual([]);
  }
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel it" }).click();
  await heading(page, /cancelled/).waitFor();
  expect(await station().specs.get(spec)).toMatchObject({
    status: "cancelled",
    decisions: [{ phase: "requirements", version: 3, approved: true, text: "as I thought" }],
  });
});

/** The example's scripted model, of whose tasks the last comes after both others. */
async function specScript(): Promise<string> {
  const text = await readFile(join(examples, "spec", "script.yaml"), "utf8");
  const free = `"dependsOn": [],`;
  const [before, after] = [text.slice(0, text.lastIndexOf(free)), text.slice(text.lastIndexOf(free) + free.length)];
  const path = join(base(), "spec-script.yaml");
  const longest = (rest: string) => rest.replace(/("criticalPath": \[\s*"TASK-001")/, `$1, "TASK-003"`);
  await writeFile(path, `${before}"dependsOn": ["TASK-001", "TASK-002"],${longest(after)}`);
  return `scripted:${path}`;
}

test("a spec's tasks are a graph with their edges, which moves as they are done", long, async () => {
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
  const side = page.getByRole("complementary", { name: "The task TASK-001" });
  await side.getByText("words.sh", { exact: true }).waitFor();
  expect(await side.getByRole("link", { name: /^run_/ }).getAttribute("href")).toMatch(/^\/runs\/run_/);
  await heading(page, /done/).waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-tasks");
  await page.setViewportSize({ width: 390, height: 844 });
  const list = page.getByRole("list", { name: "Tasks" });
  await list.getByText("after TASK-001, TASK-002").waitFor();
  await list.getByRole("region", { name: "The task TASK-001" }).getByText("words.sh", { exact: true }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "spec-tasks-phone");
});

describe("changes of runs", () => {
  const git = (cwd: string, ...argv: string[]) =>
    execFileSync("git", ["-c", "user.name=Ana", "-c", "user.email=ana@example.com", ...argv], { cwd, stdio: "pipe", encoding: "utf8" });

  /** A run of a scripted model that does this and is done. */
  async function done(source: string, command: string): Promise<RunView> {
    const turns = [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done, says a scripted model." }];
    const { run } = await station().runs.start({
      task: "Change a line",
      model: await script({ turns }),
      source: { kind: "folder", path: source },
    });
    return await station().runs.wait(run);
  }

  test("that conflict are merged when somebody takes a side", long, async () => {
    const folder = join(base(), "lines");
    await mkdir(folder);
    await writeFile(join(folder, "a.txt"), "one\ntwo\nthree\n");
    const [left, right] = [await done(folder, "sed -i s/two/LEFT/ a.txt"), await done(folder, "sed -i s/two/RIGHT/ a.txt")];
    const { id } = await station().merges.start({ sessions: [left.session, right.session], conflicts: "ask" });
    const { page } = await openPage(`/merges/${id}`);
    const conflict = page.getByRole("region", { name: "The conflict" });
    await conflict.getByRole("button", { name: "What this one has" }).waitFor(patient);
    await conflict.getByRole("button", { name: "a.txt" }).click();
    await conflict.getByText("<<<<<<<").waitFor(patient);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "merge-conflict");
    await conflict.getByRole("button", { name: "What this one has" }).click();
    await conflict.getByRole("button", { name: "Take these sides" }).click();
    await heading(page, /done/).waitFor(patient);
    await page.getByText("merge.published").waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await station().merges.get(id)).toMatchObject({ finish: "completed", result: expect.any(String) });
  });

  test("are shipped to a repository from the run's page, and merged there", long, async () => {
    const [bare, clone] = [join(base(), "bare.git"), join(base(), "clone")];
    git(base(), "init", "--quiet", "--bare", "--initial-branch=main", bare);
    git(base(), "clone", "--quiet", bare, clone);
    await writeFile(join(clone, "a.txt"), "one\n");
    for (const argv of [
      ["checkout", "--quiet", "-B", "main"],
      ["add", "."],
      ["commit", "--quiet", "-m", "First"],
      ["push", "--quiet", "origin", "main"],
    ])
      git(clone, ...argv);
    const { run } = await done(clone, "echo two >> a.txt");
    const { page } = await openPage(`/runs/${run}`);
    await page.getByRole("button", { name: "Ship…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Title").fill("Add two");
    await dialog.getByLabel("Repository").fill(bare);
    await dialog.getByRole("button", { name: "Ship", exact: true }).click();
    // Nothing that looks like tests was run.
    await dialog.getByRole("alert").waitFor();
    expect(await barriers(page)).toEqual([]);
    await dialog.getByLabel("Without tests, because").fill("it is a line of text");
    await dialog.getByRole("button", { name: "Ship", exact: true }).click();
    await page.waitForURL(/\/ships\/ship_/);
    await page.getByRole("button", { name: "Merge", exact: true }).click(patient);
    await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
    await heading(page, /merged/).waitFor(patient);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "ship-merged");
    expect(git(bare, "show", "main:a.txt")).toBe("one\ntwo\n");
    await page.getByRole("link", { name: "Ships", exact: true }).click();
    await page
      .getByRole("grid", { name: "Work" })
      .getByRole("row", { name: /Add two/ })
      .getByText("merged")
      .waitFor();
  });
});
