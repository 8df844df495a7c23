import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { barriers, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const caisson = useConsole();
const { openPage, base, url } = caisson;
const { script, startRun, view } = scriptedRuns(caisson);

const write = (content: string) => ({ calls: [{ tool: "write", arguments: { path: "note.txt", content } }] });

test("the files after a step can be viewed, taken back to, and used by a new run", async () => {
  const folder = await mkdtemp(join(base(), "folder-"));
  await writeFile(join(folder, "note.txt"), "at first\n");
  const id = await startRun(
    { turns: [write("in the first turn\n"), { say: "One." }, write("in the second turn\n"), { say: "Two." }] },
    { source: { kind: "folder", path: folder } },
  );
  await expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");
  const { page } = await openPage(`/runs/${id}`);
  await page.getByLabel("Message to the agent").fill("go on");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("log", { name: "Timeline" }).getByText("Two.", { exact: true }).first().waitFor();
  await page.getByRole("main").getByText("done", { exact: true }).waitFor();

  await page.goto(`${url()}/runs/${id}?event=1`);
  await page.getByText("Files saved before the first step").waitFor();
  await page.getByLabel("Position in the run").press("End");
  await page.getByText("Files saved after step 4").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("link", { name: "Files after step 4", exact: true }).click();
  await page.getByRole("combobox", { name: "Current state" }).selectOption("State after step 2");
  await page.getByRole("button", { name: "note.txt" }).click();
  await page.getByText("in the first turn").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("combobox", { name: "Current state" }).selectOption("State before the first step");
  await page.getByText("at first").waitFor();
  await page.goto(`${url()}/runs/${id}?tab=changes&at=2`);
  await page.locator(".cm-insertedLine, .cm-changedLine").getByText("in the first turn").waitFor();
  expect(await page.getByRole("button", { name: "Apply" }).count()).toBe(0);
  expect(await barriers(page)).toEqual([]);

  await page.getByRole("link", { name: "New run with the files after step 2" }).click();
  await page.getByRole("heading", { name: "New run from a step" }).waitFor();
  expect(await page.getByLabel("Run, or RUN@STEP").inputValue()).toBe(`${id}@2`);
  const reading = { turns: [{ calls: [{ tool: "bash", arguments: { command: "cat note.txt" } }] }, { say: "It was read." }] };
  await page.getByLabel("Model").fill(await script(reading));
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.waitForURL((address) => /\/runs\/run_/.test(address.pathname) && !address.pathname.endsWith(id));
  await page.getByText("It was read.").first().waitFor();
  await page.goto(`${page.url()}?event=1&find=first+turn`);
  await page.getByText("1", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Next match" }).click();
  await page.getByRole("button", { name: /^bash/ }).click();
  await page.getByText("in the first turn").first().waitFor();

  await page.goto(`${url()}/runs/${id}?tab=files&at=2`);
  await page.getByRole("button", { name: "Take the files back to after step 2" }).click();
  await page.getByRole("dialog", { name: "Take the files back to after step 2?" }).waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Take back" }).click();
  await page.getByText("The files are as they were after step 2: 1 file restored.").waitFor();
  await page.goto(`${url()}/runs/${id}?tab=files&file=note.txt`);
  await page.getByText("in the first turn").waitFor();
  expect(await readFile(join(folder, "note.txt"), "utf8")).toBe("at first\n");
});
