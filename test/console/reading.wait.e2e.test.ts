import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { stationOf } from "../support/console-work.ts";

const caisson = useConsole();
const { openPage, url } = caisson;
const { startRun, view } = scriptedRuns(caisson);
const station = () => stationOf(caisson);

const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
const ended = (id: string) => expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");

describe("a run's page", () => {
  test("shows why the run failed, and resumes it", async () => {
    // The script has no third turn, so the model fails.
    const id = await startRun({ turns: [{ say: "First.", ...bash("seq 1 400") }, bash("ls -la /")] });
    await ended(id);
    expect((await view(id)).finish).toBe("error");
    const { page } = await openPage(`/runs/${id}`);
    const banner = page.getByRole("region", { name: "Why the run stopped" });
    await banner.getByText("The run failed").waitFor();
    expect((await banner.textContent())?.length).toBeGreaterThan("The run failed".length + 10);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "failed");
    await page.getByRole("banner").or(page.getByRole("main")).getByRole("button", { name: "Resume" }).click();
    await page.getByText("Continued by").first().waitFor();

    const bounded = await startRun({ turns: [bash("true"), bash("true"), { say: "Finished after all." }] }, {
      budgets: { steps: 2 },
      attended: false,
    } as never);
    await ended(bounded);
    await page.goto(`${url()}/runs/${bounded}`);
    await banner.getByText("The run reached its step limit").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    const dialog = page.getByRole("dialog", { name: "Resume with larger limits" });
    await dialog.getByLabel("Steps", { exact: true }).fill("10");
    expect(await barriers(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("main").getByText("done", { exact: true }).waitFor();
    expect(await banner.count()).toBe(0);
  });

  test("counts the step in view, and makes long outputs focusable", async () => {
    const id = await startRun({ turns: [...Array.from({ length: 24 }, (_, at) => bash(`seq ${at} ${at + 60}; false`)), { say: "Done." }] });
    await ended(id);
    const { page } = await openPage(`/runs/${id}?event=1`);
    const timeline = page.getByRole("log", { name: "Timeline" });
    await timeline.getByText("Step 1", { exact: true }).waitFor();
    /** Returns the step that begins the first item in the upper half of the view, or null. */
    const seen = (where: Page) =>
      where.evaluate<number | null>(`(() => {
        const view = document.querySelector("[role=log]").getBoundingClientRect();
        const first = [...document.querySelectorAll("[role=log] article")].sort((a, b) => a.dataset.index - b.dataset.index)
          .find((row) => row.getBoundingClientRect().top >= view.top - 1);
        if (first === undefined || first.getBoundingClientRect().top > view.top + view.height / 2) return null;
        const step = /^Step (\\d+)$/i.exec(first.innerText.split("\\n").at(-1));
        return step === null ? null : Number(step[1]);
      })()`);
    const counted = async () => /^step (\d+) of/.exec((await page.getByText(/^step \d+ of/).textContent()) ?? "")?.[1];
    let compared = 0;
    for (let tries = 0; tries < 60 && compared < 3; tries += 1) {
      await timeline.hover();
      await page.mouse.wheel(0, 230);
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
      const step = await seen(page);
      if (step === null) continue;
      compared += 1;
      await expect.poll(counted).toBe(String(step));
    }
    expect(compared).toBe(3);
    // Only an output that scrolls is a tab stop, and it has a name.
    await timeline.getByRole("group", { name: "Output" }).first().waitFor();
    expect(await barriers(page)).toEqual([]);
  });
});

test("approvals render Markdown, and tool calls to allow are shown verbatim", async () => {
  const text = "Ship **version 2**?\n\n- all *tests* passed\n- see `CHANGELOG.md`\n\n<script>globalThis.taken = 1</script>";
  const { id } = await station().workflows.start({ definition: { name: "ask", steps: [{ name: "sure", kind: "approval", text }] } });
  const permission = { rules: { "bash:git *": "ask" } };
  const asks = await startRun({ turns: [bash("git tag **v2**"), { say: "Tagged." }] }, {
    agent: { name: "careful", system: "You ask.", permissions: permission.rules },
  } as never);
  await expect.poll(async () => (await station().runs.get(asks)).asked.length, { timeout: 90_000 }).toBe(1);
  const { page } = await openPage("/inbox");
  for (const path of ["/inbox", `/workflows/${id}`]) {
    if (path !== "/inbox") await page.goto(`${url()}${path}`);
    await page.locator("strong", { hasText: /^version 2$/ }).waitFor();
    await page.locator("code", { hasText: /^CHANGELOG\.md$/ }).waitFor();
    expect(await page.locator("main li em", { hasText: /^tests$/ }).count()).toBe(1);
    expect(await page.evaluate("globalThis.taken")).toBeUndefined();
    expect(await barriers(page)).toEqual([]);
    if (path === "/inbox") await page.getByText("git tag **v2**").first().waitFor();
    await picture(page, path === "/inbox" ? "inbox-markdown" : "approval-markdown");
  }
  await station().runs.stop(asks);
  await station().workflows.cancel(id);
});

test("lists link to related items, and tabs count the rows", async () => {
  const task = "Wait for the others";
  const id = await startRun({ turns: [bash("sleep 600")] }, { task, labels: { purpose: "review" } });
  await expect.poll(async () => (await view(id)).sandbox, { timeout: 90_000 }).not.toBeNull();
  const sandbox = (await view(id)).sandbox?.id ?? "";
  await station().sandboxes.create({ spec: { name: "labelled", labels: { purpose: "integration", team: "payments" } } });
  const { page } = await openPage("/sandboxes");
  const row = page.getByRole("grid", { name: "Sandboxes" }).getByRole("row").filter({ hasText: sandbox });
  await row.getByText("running").first().waitFor();
  await row.getByRole("link", { name: task }).waitFor();
  expect(await row.getByRole("link", { name: task }).getAttribute("href")).toBe(`/runs/${id}`);
  const isCut = (label: string) =>
    page
      .getByRole("grid")
      .getByText(label, { exact: true })
      .evaluate((element) => element.scrollWidth > element.clientWidth);
  expect([await isCut("purpose=integration"), await isCut("team=payments")]).toEqual([false, false]);
  expect(await barriers(page)).toEqual([]);
  await picture(page, "sandboxes-of-runs");
  await station().sandboxes.remove("labelled");
  await station().runs.stop(id);

  const approval = { definition: { name: "counted", steps: [{ name: "sure", kind: "approval", text: "Sure?" }] } };
  const open = await station().workflows.start(approval as never);
  const over = await station().workflows.start(approval as never);
  await station().workflows.cancel(over.id);
  await page.goto(`${url()}/work`);
  const rows = page.getByRole("grid", { name: "Work" }).getByRole("row");
  const tab = (name: string) => page.getByRole("navigation", { name: "Kinds of work" }).getByRole("link", { name });
  await expect.poll(() => rows.filter({ hasText: "counted" }).count()).toBe(2);
  for (const narrowed of [false, true]) {
    if (narrowed) await page.getByLabel("Search title, name, id").fill(open.id);
    await expect.poll(async () => await tab("All").textContent()).toMatch(new RegExp(`^All\\s*${await rows.count()}$`));
    await tab("Workflows").click();
    await expect.poll(async () => await tab("Workflows").textContent()).toMatch(new RegExp(`^Workflows\\s*${await rows.count()}$`));
    if (narrowed) expect(await rows.count()).toBe(1);
  }
  await station().workflows.cancel(open.id);
});
