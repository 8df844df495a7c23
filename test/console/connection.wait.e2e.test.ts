import { setTimeout as passed } from "node:timers/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { useConsole } from "../support/console.ts";
import { breakableLink } from "../support/console-link.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { isThorough } from "../support/thorough.ts";

const caisson = useConsole();
const { openPage, run, url } = caisson;
const { startRun, view } = scriptedRuns(caisson);

const OUTAGE_MS = isThorough ? 20_000 : 3_000;
const MARKS = 12;
const marks = Array.from({ length: MARKS }, (_, index) => `mark ${index + 1} of ${MARKS}`);
const until = (file: string) => `while ! test -e ${file}; do sleep 0.1; done`;

/** Says one mark, waits until a file exists, then says all the others. */
const waitingScript = {
  turns: [
    { say: marks[0], calls: [{ tool: "bash", arguments: { command: until("go") } }] },
    ...marks.slice(1).map((say) => ({ say, calls: [{ tool: "bash", arguments: { command: `echo after ${say}` } }] })),
    { say: "All marks are made." },
  ],
};

/** Unblocks the run and waits for its end, without the page, which may be disconnected. */
async function finishUnwatched(id: string): Promise<void> {
  const { sandbox } = await view(id);
  await run(["exec", "--sandbox", sandbox?.id ?? "", "--", "touch", "/workspace/go"]);
  await expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");
}

/** Returns every item in the page's timeline, each with the link to its first event. */
async function items(page: Page): Promise<string[]> {
  return page
    .getByRole("log", { name: "Timeline" })
    .getByRole("article")
    .evaluateAll((all) =>
      all.map(
        (each) =>
          `${each.querySelector("a")?.getAttribute("href")} ${each.lastElementChild?.textContent?.replaceAll(/\d+(\.\d+)? m?s|s/g, "")}`,
      ),
    );
}

const tall = { width: 1360, height: 9_000 };

/** Checks that a page that watched the run shows the same as a page opened afterwards. */
async function expectWhole(page: Page, id: string): Promise<void> {
  await page.getByText("All marks are made.").waitFor();
  await page.getByRole("main").getByText("done", { exact: true }).waitFor();
  const afterwards = await openPage(`/runs/${id}?all=1&event=1`);
  await afterwards.page.setViewportSize(tall);
  await afterwards.page.getByText("All marks are made.").waitFor();
  await expect.poll(async () => await items(page), { timeout: 60_000 }).toEqual(await items(afterwards.page));
  for (const mark of marks) expect(await page.getByText(mark, { exact: true }).count(), mark).toBe(1);
}

test("a run that starts between the list request and the stream appears in the list", async () => {
  await using link = await breakableLink(url());
  const release = link.holdStreams();
  const { page } = await openPage("/runs", { at: link.url });
  await page.getByText("No runs yet").waitFor();
  const id = await startRun({ turns: [{ say: "Done before anybody listened." }] }, { task: "an early task" });
  await expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");
  release();
  await page.getByRole("grid", { name: "Runs" }).getByText("an early task").waitFor();
});

async function losesConnection(): Promise<void> {
  await using link = await breakableLink(url());
  const id = await startRun(waitingScript);
  const { page } = await openPage(`/runs/${id}?all=1`, { at: link.url });
  await page.setViewportSize(tall);
  await page.getByText(marks[0] ?? "").waitFor();
  const since = Date.now();
  link.cut();
  await page.getByText("The station cannot be reached.").waitFor();
  await finishUnwatched(id);
  await passed(Math.max(0, OUTAGE_MS - (Date.now() - since)));
  expect(await page.getByText(marks[1] ?? "", { exact: true }).count()).toBe(0);
  link.mend();
  await page.getByText("The station cannot be reached.").waitFor({ state: "detached" });
  await expectWhole(page, id);
}

async function losesStream(): Promise<void> {
  await using link = await breakableLink(url());
  const id = await startRun(waitingScript);
  const { page } = await openPage(`/runs/${id}?all=1`, { at: link.url });
  await page.setViewportSize(tall);
  await page.getByText(marks[0] ?? "").waitFor();
  link.silenceStreams();
  await finishUnwatched(id);
  await expectWhole(page, id);
}

// Both run concurrently: they only wait, twenty seconds each.
test("every event is shown once after an outage or a silent stream", {
  timeout: 240_000,
}, async () => {
  const done = await Promise.allSettled([losesConnection(), losesStream()]);
  expect(done.filter(({ status }) => status === "rejected")).toEqual([]);
});
