import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { long, patient, stationOf } from "../support/console-work.ts";

const console = useConsole();
const { openPage, base, url } = console;
const { script, startRun, view } = scriptedRuns(console);
const station = () => stationOf(console);

const write = (...files: [path: string, content: string][]) => ({
  calls: files.map(([path, content]) => ({ tool: "write", arguments: { path, content } })),
});
const costUsdPerCall = 0.25;

/** Takes three steps on a new folder, and returns the run with the folder. */
async function threeSteps(): Promise<{ run: string; folder: string }> {
  const folder = await mkdtemp(join(base(), "folder-"));
  await writeFile(join(folder, "note.txt"), "at first\n");
  const turns = [write(["note.txt", "one\n"]), write(["note.txt", "two\n"], ["only-here.txt", "new\n"]), { say: "All three." }];
  const run = await startRun({ turns, costUsdPerCall }, { source: { kind: "folder", path: folder } });
  await expect.poll(async () => (await view(run)).status, { timeout: 90_000 }).toBe("ended");
  return { run, folder };
}

const slider = (page: Page) => page.getByRole("slider", { name: "Step" });
const stepHeading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });
const changedFiles = (page: Page) => page.getByRole("list", { name: "Changed files" });

test("a run can be scrubbed, forked, compared and rewound", long, async () => {
  const { run, folder } = await threeSteps();
  const { page } = await openPage(`/runs/${run}`);
  await page.getByRole("link", { name: "Steps", exact: true }).click();
  await stepHeading(page, "Step 3 of 3").waitFor(patient);
  await page.getByText("All three.").first().waitFor();
  expect(await slider(page).getAttribute("aria-valuetext")).toBe("step 3 of 3: no changes, $0.25");
  await slider(page).press("ArrowLeft");
  await stepHeading(page, "Step 2 of 3").waitFor();
  await changedFiles(page)
    .getByRole("button", { name: /only-here\.txt/ })
    .waitFor(patient);
  await changedFiles(page)
    .getByRole("button", { name: /note\.txt/ })
    .click();
  await page.locator(".cm-deletedChunk").getByText("one", { exact: true }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "steps");
  await page.getByRole("combobox", { name: "Changes since" }).selectOption("the beginning");
  await page.locator(".cm-deletedChunk").getByText("at first").waitFor(patient);
  await page.getByRole("link", { name: "All files at this step" }).click();
  await page.getByRole("button", { name: "only-here.txt" }).waitFor(patient);
  await page.goBack();

  await slider(page).press("Home");
  await stepHeading(page, "Before the first step").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Next step" }).click();
  await stepHeading(page, "Step 1 of 3").waitFor();
  await page.getByRole("button", { name: "Fork from here…" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork after step 1" });
  expect(await barriers(page)).toEqual([]);
  await picture(page, "fork-dialog");
  await dialog.getByLabel("Number of forks").fill("0");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  expect(await dialog.getByLabel("Number of forks").getAttribute("aria-invalid")).toBe("true");
  await dialog.getByLabel("Number of forks").fill("1");
  await dialog.getByLabel("Model").fill("nonsense");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByRole("alert").getByText("nonsense").first().waitFor();
  // The script answers by the number of calls: the first one was the parent's.
  const turns = [{ say: "" }, write(["note.txt", "other\n"], ["b.txt", "b\n"]), { say: "Another way." }];
  await dialog.getByLabel("Model").fill(await script({ turns, costUsdPerCall: 0.5 }));
  await dialog.getByLabel("Name").fill("another-way");
  await dialog.getByLabel("Message").fill("try another way");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await page.waitForURL((address) => /\/runs\/run_/.test(address.pathname) && !address.pathname.endsWith(run));
  const fork = page.url().split("/").at(-1) ?? "";
  await page.getByText("Another way.").first().waitFor(patient);
  await expect.poll(async () => (await view(fork)).status, { timeout: 90_000 }).toBe("ended");

  // The step that the fork inherited has its files, too.
  await page.goto(`${url()}/runs/${fork}?tab=steps&step=1`);
  await page.getByRole("region", { name: "About this step" }).getByText(`taken by ${run}`).waitFor(patient);
  await changedFiles(page)
    .getByRole("button", { name: /note\.txt/ })
    .waitFor(patient);
  await page.getByRole("link", { name: "Forks", exact: true }).click();
  const tree = page.getByRole("list", { name: "Fork tree" });
  await tree.getByText("after step 1 · 3 steps · $1", { exact: false }).waitFor();
  expect(await tree.getByRole("listitem").count()).toBe(2);
  await tree.getByRole("checkbox", { name: `Compare ${run}` }).check();
  await tree.getByRole("checkbox", { name: "Compare another-way" }).check();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("link", { name: "Compare" }).click();
  const compared = page.getByRole("navigation", { name: "Compared files" });
  await compared.getByRole("region", { name: "Different in A and B" }).getByText("note.txt").waitFor(patient);
  await compared.getByRole("region", { name: "Changed only in A" }).getByText("only-here.txt").waitFor();
  await compared.getByRole("region", { name: "Changed only in B" }).getByText("b.txt").waitFor();
  const facts = page.getByRole("table", { name: "Facts about both runs" });
  await facts.getByRole("row", { name: "Cost $0.75 $1" }).waitFor();
  await facts.getByRole("row", { name: "Last words All three. Another way." }).waitFor();
  await page.locator(".cm-merge-a").getByText("two", { exact: true }).waitFor(patient);
  await page.locator(".cm-merge-b").getByText("other", { exact: true }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "compare");
  await compared.getByRole("button", { name: "b.txt" }).click();
  await page.getByText("A does not have it.").waitFor(patient);

  await page.goto(`${url()}/runs/${run}?tab=steps&step=1`);
  await page.getByText("Forked here:").getByRole("link", { name: "another-way" }).waitFor(patient);
  await page.getByRole("button", { name: "Rewind to here…" }).click();
  const confirm = page.getByRole("dialog", { name: "Rewind to step 1?" });
  await confirm.getByText("2 steps no longer count").waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "rewind-dialog");
  await confirm.getByRole("button", { name: "Rewind" }).click();
  await page.getByText(/The run is as it was after step 1: 2 files restored\. run_\w+ has what came after\./).waitFor(patient);
  await stepHeading(page, "Step 1 of 1").waitFor(patient);
  expect(await readFile(join(folder, "note.txt"), "utf8")).toBe("at first\n");
  await page.getByRole("button", { name: "Rewind to here…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rewind" }).click();
  await page.getByText(`the run ${run} is as it was after step 1`).waitFor(patient);
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Forks", exact: true }).click();
  await tree.getByText("taken back by a rewind").waitFor(patient);
  expect(await tree.getByRole("listitem").count()).toBe(3);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "forks");
});

test("the steps and forks of a run fit on a phone, in the dark", long, async () => {
  const { run } = await threeSteps();
  const [fork] = await station().runs.fork(run, { at: 2, text: "and again", model: await script({ turns: [{}, {}, { say: "Again." }] }) });
  await station().runs.wait(fork?.run ?? "");
  const { page } = await openPage(`/runs/${run}?tab=steps&step=2`, { phone: true, dark: true });
  await stepHeading(page, "Step 2 of 3").waitFor(patient);
  await changedFiles(page)
    .getByRole("button", { name: /note\.txt/ })
    .waitFor(patient);
  await page.getByRole("button", { name: "Previous step" }).tap();
  await stepHeading(page, "Step 1 of 3").waitFor();
  const box = await slider(page).boundingBox();
  // Each step, and the time before the first, has a quarter of the width.
  const tap = (part: number) => page.touchscreen.tap((box?.x ?? 0) + (box?.width ?? 0) * part, (box?.y ?? 0) + 10);
  await tap(0.78);
  await stepHeading(page, "Step 3 of 3").waitFor();
  await tap(0.02);
  await stepHeading(page, "Before the first step").waitFor();
  await tap(0.73);
  await stepHeading(page, "Step 2 of 3").waitFor();
  await changedFiles(page)
    .getByRole("button", { name: /note\.txt/ })
    .waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "steps-phone-dark");
  await page.goto(`${url()}/runs/${run}?tab=forks`);
  await page.getByRole("list", { name: "Fork tree" }).getByText("after step 2").waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "forks-phone-dark");
  await page.goto(`${url()}/compare/${run}/${fork?.run}`);
  await page.getByRole("region", { name: "The same in A and B" }).getByText("note.txt").waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "compare-phone-dark");
  // Nothing is wider than the screen.
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
});
