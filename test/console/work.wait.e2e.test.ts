import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RunView } from "../../src/contract/run/run-verbs.ts";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { heading, long, node, patient, stationOf } from "../support/console-work.ts";

const console = useConsole();
const { openPage, base } = console;
const { script } = scriptedRuns(console);
const station = () => stationOf(console);

test("an empty list explains how to create an item", async () => {
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

test("the page of a missing item says that it does not exist", async () => {
  for (const [path, what] of [
    ["workflows/wf_aaaaaaaaaaaa", "workflow"],
    ["specs/spec_aaaaaaaaaaaa", "spec"],
    ["ships/ship_aaaaaaaaaaaa", "ship"],
    ["merges/mrg_aaaaaaaaaaaa", "merge"],
    ["bests/best_aaaaaaaaaaaa", "best-of"],
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

  test("updates live, and can be approved, retried and removed", long, async () => {
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
    await node(page, "publish", "pending").waitFor();
    await page.getByRole("button", { name: "Send a signal" }).click();
    expect(await page.getByLabel("Signal", { exact: true }).inputValue()).toBe("begin");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await node(page, "begin", "done").waitFor();
    await node(page, "write", "done").waitFor(patient);
    await node(page, "lines", "done").waitFor(patient);
    const asks = page.getByRole("region", { name: "agree needs approval" });
    await asks.getByText("May the note⟨U+202E⟩ be sent?").waitFor(patient);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "workflow-asks");
    await asks.getByLabel("Comment").fill("well said");
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
    const run = page.getByRole("complementary", { name: "Step write" }).getByRole("link", { name: /^run_/ });
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

  test("can be paused, resumed and cancelled on a phone", long, async () => {
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
    await page.getByRole("complementary", { name: "Step sub" }).getByRole("link", { name: /wf_/ }).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await heading(page, /paused/).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel workflow" }).click();
    await heading(page, /cancelled/).waitFor();
    await node(page, "sub", "cancelled").waitFor();
    expect(await station().workflows.get(id)).toMatchObject({ finish: "cancelled" });
  });
});

describe("run changes", () => {
  const git = (cwd: string, ...argv: string[]) =>
    execFileSync("git", ["-c", "user.name=Ana", "-c", "user.email=ana@example.com", ...argv], { cwd, stdio: "pipe", encoding: "utf8" });

  /** Runs one command with a scripted model, and returns the finished run. */
  async function done(source: string, command: string): Promise<RunView> {
    const turns = [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done, says a scripted model." }];
    const { run } = await station().runs.start({
      task: "Change a line",
      model: await script({ turns }),
      source: { kind: "folder", path: source },
    });
    return await station().runs.wait(run);
  }

  test("that conflict merge when a user picks a side", long, async () => {
    const folder = join(base(), "lines");
    await mkdir(folder);
    await writeFile(join(folder, "a.txt"), "one\ntwo\nthree\n");
    const [left, right] = [await done(folder, "sed -i s/two/LEFT/ a.txt"), await done(folder, "sed -i s/two/RIGHT/ a.txt")];
    const { id } = await station().merges.start({ sessions: [left.session, right.session], conflicts: "ask" });
    const { page } = await openPage(`/merges/${id}`);
    const conflict = page.getByRole("region", { name: "Conflict" });
    await conflict.getByRole("button", { name: "This session's version" }).waitFor(patient);
    await conflict.getByRole("button", { name: "a.txt" }).click();
    await conflict.getByText("<<<<<<<").waitFor(patient);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "merge-conflict");
    await conflict.getByRole("button", { name: "This session's version" }).click();
    await conflict.getByRole("button", { name: "Use these versions" }).click();
    await heading(page, /done/).waitFor(patient);
    await page.getByText("merge.published").waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await station().merges.get(id)).toMatchObject({ finish: "completed", result: expect.any(String) });
  });

  test("can be shipped to a repository and merged from the run's page", long, async () => {
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
    // The run executed nothing that looks like tests.
    await dialog.getByRole("alert").waitFor();
    // The advice refers to this form, not to the command line.
    const alert = await dialog.getByRole("alert").textContent();
    expect(alert).toMatch(/say above why you ship without them/);
    expect(alert).not.toMatch(/--[a-z]|caisson /);
    expect(await barriers(page)).toEqual([]);
    await dialog.getByLabel("Reason to ship without tests").fill("it is a line of text");
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
