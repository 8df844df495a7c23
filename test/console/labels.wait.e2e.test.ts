import { expect, test } from "vitest";
import { barriers, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const caisson = useConsole();
const { openPage, run, url } = caisson;
const { startRun, view } = scriptedRuns(caisson);

test("run and sandbox labels can be edited on their pages, and filter the lists", async () => {
  const id = await startRun({ turns: [{ say: "Done." }] });
  await expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");
  const { page } = await openPage(`/runs/${id}?tab=details`);
  const box = page.getByRole("textbox", { name: "New label" });
  await box.fill("team=floors");
  await box.press("Enter");
  await page.getByRole("button", { name: "Remove the label team" }).waitFor();
  expect(await barriers(page)).toEqual([]);
  expect((await run(["label", id])).text.trim()).toBe("team=floors");
  await page.goto(`${url()}/runs?label=team%3Dfloors`);
  await page.getByRole("row").filter({ hasText: "team=floors" }).waitFor();
  // An open page follows label changes from elsewhere.
  await run(["label", id, "--remove", "team", "state=kept"]);
  await page.getByText("No matching runs").waitFor();

  const sandbox = (await run(["sandbox", "create", "--name", "labelled", "--no-workspace", "--label", "team=blue"])).text.trim();
  await page.goto(`${url()}/sandboxes/${sandbox}?tab=details`);
  await page.getByRole("button", { name: "Remove the label team" }).click();
  await page.getByRole("button", { name: "Remove the label team" }).waitFor({ state: "detached" });
  await box.fill("run=mine");
  await box.press("Enter");
  await page.getByText(`the label "run" is reserved`).waitFor();
  await box.fill("team=green");
  await box.press("Enter");
  await page.getByRole("button", { name: "Remove the label team" }).waitFor();
  await page.goto(`${url()}/sandboxes?label=team%3Dgreen`);
  await page.getByRole("row").filter({ hasText: "labelled" }).waitFor();
  expect((await run(["sandbox", "ls", "--label", "team=blue", "--json"])).text.trim()).toBe("[]");
});
