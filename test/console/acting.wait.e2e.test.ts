import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { barriers, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const caisson = useConsole();
const { openPage, base, run, url } = caisson;
const { script, startRun, view } = scriptedRuns(caisson);

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const timelineOf = (page: Page) => page.getByRole("log", { name: "Timeline" });
const ended = (id: string) => expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");

/** Presses Tab until the named element has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let pressed = 0; pressed < 60; pressed += 1) {
    await page.keyboard.press("Tab");
    const focused = (await page.evaluate(
      "(document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim()",
    )) as string;
    const labels = (await page.evaluate("[...(document.activeElement?.labels ?? [])].map((each) => each.textContent).join(' ')")) as string;
    if (name.test(focused) || name.test(labels)) return;
  }
  throw new Error(`no Tab leads to ${name}`);
}

describe("the keyboard", () => {
  test("starts, steers, stops and repeats a run", async () => {
    const model = await script({
      turns: [
        { say: "Begun.", calls: [bash("while ! test -e go; do sleep 0.1; done")] },
        { say: "As you say.", expect: { news: ["the other way"] }, calls: [bash("sleep 600")] },
      ],
    });
    const { page } = await openPage("/runs");
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await page.keyboard.press("c");
    await page.getByRole("heading", { name: "New run" }).waitFor();
    await tabTo(page, /^Task/);
    await page.keyboard.type("By hand");
    await tabTo(page, /^Model/);
    await page.keyboard.type(model);
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/runs\/run_/);
    const id = new URL(page.url()).pathname.split("/")[2] ?? "";
    await timelineOf(page).getByText("Begun.").waitFor();
    await tabTo(page, /^Message to the agent/);
    await page.keyboard.type("go the other way");
    await page.keyboard.press("Control+Enter");
    await page.getByText("not read yet").waitFor();
    await run(["exec", "--sandbox", (await view(id)).sandbox?.id ?? "", "--", "touch", "/workspace/go"]);
    await timelineOf(page).getByText("As you say.").waitFor();
    await page.getByText("read in step 2").waitFor();
    await page.evaluate("document.activeElement?.blur()");
    await tabTo(page, /^Stop$/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Stop this run?" }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await timelineOf(page).getByText("Ended: cancelled").waitFor();
    await page.evaluate("document.activeElement?.blur()");
    await tabTo(page, /^Repeat with changes$/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Repeat with changes" }).waitFor();
    expect(await page.getByLabel("Task").inputValue()).toBe("By hand");
    expect(await page.getByLabel("Model").inputValue()).toBe(model);
  });
});

describe("a paused run", () => {
  test("can be resumed, and given more steps when its budget is used up", async () => {
    const id = await startRun(
      {
        turns: [
          { say: "First step.", calls: [bash("while ! test -e go; do sleep 0.1; done")] },
          { say: "Second step.", calls: [bash("echo second")] },
          { say: "Third step.", calls: [bash("echo third")] },
          { say: "Finished." },
        ],
      },
      { budgets: { steps: 2 } },
    );
    const { page } = await openPage(`/runs/${id}`);
    const timeline = timelineOf(page);
    await timeline.getByText("First step.").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await timeline.getByText("Resumed by").waitFor();
    await run(["exec", "--sandbox", (await view(id)).sandbox?.id ?? "", "--", "touch", "/workspace/go"]);
    await timeline.getByLabel("Steps", { exact: true }).fill("20");
    expect(await barriers(page)).toEqual([]);
    await timeline.getByRole("button", { name: "Continue" }).click();
    await timeline.getByText("Finished.").waitFor();
    await page.getByText("of 20 steps").first().waitFor();
  });
});

describe("a run with sub-runs", () => {
  test("shows them in lanes of its timeline, with links to their pages", async () => {
    const id = await startRun(
      {
        turns: [{ say: "Helper, help.", calls: [{ tool: "agent", arguments: { agent: "helper", task: "count" } }] }, { say: "Thanks." }],
        agents: { helper: [{ say: "I count for you.", calls: [bash("echo $((20 + 22))")] }, { say: "It is counted." }] },
      },
      {
        agent: { name: "lead", system: "You lead.", agents: ["helper"], subAgents: { helper: { name: "helper", system: "You help." } } },
      },
    );
    const { page } = await openPage(`/runs/${id}?event=1`);
    await page.setViewportSize({ width: 1360, height: 4_000 });
    const timeline = timelineOf(page);
    await timeline.getByText("Thanks.", { exact: true }).waitFor();
    const call = timeline.getByRole("article").filter({ hasText: /^.*agent.*count/ });
    await call.getByText("I count for you.", { exact: true }).waitFor();
    await call.getByText("It is counted.", { exact: true }).first().waitFor();
    expect(await barriers(page)).toEqual([]);
    await call.getByRole("link", { name: "helper" }).click();
    await page.waitForURL((address) => /\/runs\/run_/.test(address.pathname) && !address.pathname.endsWith(id));
    await page.getByRole("link", { name: id }).waitFor();
  });
});

describe("a run's changes", () => {
  /** Returns a finished run that wrote two files in a separate repository. */
  async function changedRun(): Promise<{ id: string; git(...argv: string[]): string; folder: string }> {
    const folder = await mkdtemp(join(base(), "repository-"));
    const git = (...argv: string[]) => execFileSync("git", ["-C", folder, ...argv], { encoding: "utf8" });
    git("init", "-q", "-b", "main");
    await writeFile(join(folder, "one.txt"), "before\n");
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
    const turns = [{ calls: [write("one.txt", "after\n"), write("two.txt", "new\n")] }, { say: "Written." }];
    const id = await startRun({ turns }, { source: { kind: "folder", path: folder } });
    await ended(id);
    return { id, git, folder };
  }

  test("can be committed to a branch without changing the folder, then discarded", async () => {
    const { id, git, folder } = await changedRun();
    const { page } = await openPage(`/runs/${id}?tab=changes&file=one.txt`);
    await page.getByRole("button", { name: "Side by side" }).click();
    await page.locator(".cm-merge-a").getByText("before").waitFor();
    await page.locator(".cm-merge-b").getByText("after").waitFor();
    expect(page.url()).toContain("split=1");
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Branch" }).click();
    await page.getByLabel("Branch", { exact: true }).fill("of-the-agent");
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Commit" }).click();
    await page.getByText("Committed on of-the-agent").waitFor();
    expect(git("show", "of-the-agent:one.txt")).toBe("after\n");
    expect(await readFile(join(folder, "one.txt"), "utf8")).toBe("before\n");
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByRole("dialog", { name: "Discard the session?" }).getByRole("button", { name: "Discard" }).click();
    await page.getByText("The session and its changes were discarded.").waitFor();
    expect(git("status", "--porcelain")).toBe("");
  });

  test("can be undone, and the run exported as a self-contained page", async () => {
    const { id, folder } = await changedRun();
    const { page, context } = await openPage(`/runs/${id}?tab=changes`);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("dialog", { name: "Apply 2 files?" }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Undo the last turn" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored 2 files to before the last turn.").waitFor();
    await page.getByText("No changes").waitFor();
    expect(await readFile(join(folder, "one.txt"), "utf8")).toBe("before\n");
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("dialog", { name: "Export this run" }).waitFor();
    expect(await barriers(page)).toEqual([]);
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "HTML file" }).click();
    const saved = join(base(), "run.html");
    await (await saving).saveAs(saved);
    const apart = await context.newPage();
    const fetched: string[] = [];
    apart.on("request", (request) => fetched.push(new URL(request.url()).protocol));
    await apart.goto(`file://${saved}`);
    await apart.getByText("Written.").first().waitFor();
    expect(new Set(fetched)).toEqual(new Set(["file:"]));
  });
});

describe("the run list", () => {
  test("filters by the address, and stops and removes selected runs together", async () => {
    const labels = { batch: "seven" };
    const waiting = { turns: [{ say: "Waiting.", calls: [bash("sleep 600")] }] };
    const ids = await Promise.all(["first", "second"].map((task) => startRun(waiting, { task: `${task} of seven`, labels })));
    await startRun({ turns: [{ say: "Other." }] }, { task: "not of them" });
    const { page } = await openPage("/runs?label=batch%3Dseven&sort=title");
    const list = page.getByRole("grid", { name: "Runs" });
    await expect
      .poll(() => list.getByRole("row").allInnerTexts())
      .toEqual([expect.stringContaining("first of"), expect.stringContaining("second of")]);
    await page.getByLabel("Search task, name, id, label").fill("second");
    await expect.poll(() => list.getByRole("row").count()).toBe(1);
    expect(new URL(page.url()).search).toContain("q=second");
    await page.goBack().catch(() => null);
    await page.goto(`${url()}/runs?label=batch%3Dseven&sort=title`);
    await expect.poll(() => list.getByRole("row").count()).toBe(2);
    await page.getByRole("button", { name: "Save filter" }).click();
    await page.getByLabel("Name", { exact: true }).fill("seven");
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.goto(`${url()}/runs`);
    await page.getByRole("button", { name: "seven", exact: true }).click();
    await expect.poll(() => list.getByRole("row").count()).toBe(2);
    await list.focus();
    await page.keyboard.press("Control+a");
    await page.getByRole("button", { name: "Stop 2" }).click();
    await page.getByRole("dialog", { name: "Stop 2 runs?" }).getByRole("button", { name: "Stop" }).click();
    await Promise.all(ids.map(ended));
    await page.getByText("2 runs stopped").waitFor();
    await list.focus();
    await page.keyboard.press("Control+a");
    await page.getByRole("button", { name: "Remove 2" }).click();
    await page.getByRole("dialog", { name: "Remove 2 runs?" }).getByRole("button", { name: "Remove" }).click();
    await page.getByText("No matching runs").waitFor();
  });
});
