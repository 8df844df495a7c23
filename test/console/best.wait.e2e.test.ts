import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BestView } from "../../src/contract/best/best-verbs.ts";
import { poisonText } from "../../src/contract/run/poison.ts";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { heading, long, patient, stationOf } from "../support/console-work.ts";

const console = useConsole();
const { openPage, base, url } = console;
const { script } = scriptedRuns(console);
const station = () => stationOf(console);

/** Starts attempts that each run one command, graded by what is in `n.txt`. */
async function startBest(commands: readonly string[], concurrency = 2): Promise<BestView> {
  const folder = await mkdtemp(join(base(), "folder-"));
  await writeFile(join(folder, "n.txt"), "0\n");
  const models = await Promise.all(
    commands.map((command) =>
      script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "All done now." }], costUsdPerCall: 0.01 }),
    ),
  );
  return await station().bests.start({
    start: { task: "Count to <b>two</b>", source: { kind: "folder", path: folder } },
    attempts: commands.length,
    models,
    concurrency,
    grade: "cat n.txt; grep -q 2 n.txt",
  });
}

test("a best-of shows its attempts ranked, with the promoted one marked", long, async () => {
  const { id } = await startBest(["echo 1 > n.txt", "echo 2 > n.txt", "echo 3 > n.txt; echo more > m.txt"]);
  const { page } = await openPage("/work?kind=best");
  const row = page.getByRole("grid", { name: "Work" }).getByRole("row", { name: /Count to <b>two<\/b>/ });
  await row.getByText("done").waitFor(patient);
  expect(await barriers(page)).toEqual([]);
  await row.getByText("Count to", { exact: false }).click();
  await page.waitForURL(new RegExp(`/bests/${id}`));
  const attempts = page.getByRole("table", { name: "Attempts" });
  const first = attempts.getByRole("row").nth(1);
  await first.getByText("Attempt 2").waitFor(patient);
  await first.getByText("promoted").waitFor();
  await first.getByText("passed", { exact: true }).waitFor();
  await first.getByText("exit 0").click();
  await first.getByRole("region", { name: "Output of the grader for attempt 2" }).getByText("2").waitFor();
  expect(await attempts.getByText("not passed").count()).toBe(2);
  await page.getByText("best.promoted").waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "best");
  const { winner, attempts: ranked } = await station().bests.get(id);
  expect(await page.getByRole("link", { name: "Review the winner" }).getAttribute("href")).toBe(`/runs/${winner?.run}?tab=changes`);
  const third = ranked.find(({ attempt }) => attempt === 3)?.run;
  await attempts.getByRole("link", { name: `Compare ${third} with the winner` }).click();
  await page.getByRole("region", { name: "Different in A and B" }).getByText("n.txt").waitFor(patient);
  await page.getByRole("region", { name: "Changed only in B" }).getByText("m.txt").waitFor();
  await page.goto(`${url()}/runs/${winner?.run}`);
  await page.getByRole("link", { name: `best-of ${id}` }).waitFor(patient);

  const phone = await openPage(`/bests/${id}`, { phone: true, dark: true });
  await phone.page.getByRole("list", { name: "Attempts" }).getByText("promoted").waitFor(patient);
  expect(await barriers(phone.page)).toEqual([]);
  await picture(phone.page, "best-phone-dark");
  await phone.page.getByRole("button", { name: "Remove" }).click();
  await phone.page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await heading(phone.page, "Work").waitFor();
  expect((await station().bests.list()).items).toEqual([]);
  // The attempts stay.
  expect((await station().runs.get(winner?.run ?? "")).finish).toBe("done");
});

test("a best-of can be paused, resumed from the inbox and cancelled", long, async () => {
  const { id } = await startBest(["sleep 1000", "sleep 1000"], 1);
  const { page } = await openPage(`/bests/${id}`);
  await page.getByRole("table", { name: "Attempts" }).getByText("running").waitFor(patient);
  await page.getByRole("button", { name: "Pause" }).click();
  await heading(page, /paused/).waitFor(patient);
  await page.getByText("Paused: paused in the console").waitFor();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Resume" }).click();
  await heading(page, /running/).waitFor(patient);
  // The inbox has one that was paused because it stopped a station.
  await station().bests.pause(id, { text: poisonText("best", id) });
  await page.goto(`${url()}/inbox`);
  const entry = page.getByRole("listitem").filter({ hasText: "The station stopped answering" });
  expect(await entry.getByRole("link", { name: /^Count to/ }).getAttribute("href")).toBe(`/bests/${id}`);
  await entry.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Nothing is waiting for you").waitFor(patient);
  await page.goto(`${url()}/bests/${id}`);
  await heading(page, /running/).waitFor(patient);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel best-of" }).click();
  await heading(page, /cancelled/).waitFor(patient);
  expect(await station().bests.get(id)).toMatchObject({ finish: "cancelled" });
});
