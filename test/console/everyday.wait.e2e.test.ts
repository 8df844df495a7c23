import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";
import { problemOfCommand } from "../support/parsed-command.ts";

const caisson = useConsole();
const { openPage, base, run, url } = caisson;
const { script, startRun, view } = scriptedRuns(caisson);

interface Offering {
  list: { options: Iterable<{ value: string }> } | null;
}

const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });
const ended = (id: string) => expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");

describe("the keyboard shortcuts", () => {
  test("work in lists without a click, and open a palette that accepts input at once", async () => {
    const ids: string[] = [];
    for (const task of ["first of the keys", "second of the keys"]) ids.push(await startRun({ turns: [{ say: "Said." }] }, { task }));
    await Promise.all(ids.map(ended));
    const { page } = await openPage("/runs?q=of+the+keys&sort=title");
    const rows = page.getByRole("grid", { name: "Runs" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(2);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await expect.poll(() => rows.nth(1).getAttribute("aria-selected")).toBe("true");
    expect(await rows.nth(0).getAttribute("aria-selected")).toBe("false");
    // In a field, the same keys type letters.
    await page.keyboard.press("/");
    await page.keyboard.type("jx");
    expect(await page.getByLabel("Search task, name, id, label").inputValue()).toBe("of the keysjx");
    await page.goto(`${url()}/runs?q=of+the+keys&sort=title`);
    await expect.poll(() => rows.count()).toBe(2);
    // While a dialog is open, shortcuts do not reach the list behind it.
    await page.getByRole("button", { name: "Save filter" }).click();
    await page.getByRole("dialog").waitFor();
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await rows.nth(0).getAttribute("aria-selected")).toBe("false");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.waitForURL((address) => address.pathname === `/runs/${ids[0]}`);

    // Typed without waiting for the palette, although `s` and `c` are shortcuts on this page.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("second of");
    await expect.poll(() => page.getByPlaceholder("A page, a run, a sandbox…").inputValue()).toBe("second of");
    await page.getByRole("option", { name: "second of the keys" }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForURL((address) => address.pathname === `/runs/${ids[1]}`);
  });
});

describe("the pages", () => {
  test("show beginners only commands that the command line accepts", async () => {
    const { page } = await openPage("/welcome", { phone: true });
    await heading(page, "Welcome").waitFor();
    const commands: string[] = [];
    for (const path of ["/welcome", "/work", "/work?kind=merge", "/sandboxes", "/runs?q=nothing"]) {
      await page.goto(`${url()}${path}`);
      await page.waitForLoadState("networkidle");
      const found = await page.locator("main code").allInnerTexts();
      commands.push(...found.filter((text) => text.startsWith("caisson ")));
      // Areas that scroll on a phone are reachable by keyboard.
      expect(await barriers(page), path).toEqual([]);
    }
    expect(commands.length).toBeGreaterThan(5);
    expect(commands.flatMap((line) => problemOfCommand(line) ?? [])).toEqual([]);
  });

  test("include one for unknown addresses, with a way back", async () => {
    const { page, complaints } = await openPage("/nonsense/of/mine");
    await page.getByText("There is nothing at this address").waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("link", { name: "All runs" }).click();
    await heading(page, "Runs").waitFor();
    // The browser itself reports the page's status 404.
    complaints.splice(0);
  });

  test("draw ids and code without ligatures", async () => {
    const { page } = await openPage("/runs");
    await heading(page, "Runs").waitFor();
    await page.evaluate("document.fonts.ready");
    const drawn = async (family: string, own: string) => {
      const style = `position: fixed; inset: 0 auto auto 0; z-index: 9; background: white; color: black; font-family: var(${family}); ${own}`;
      await page.evaluate(`(() => {
        document.getElementById("drawn")?.remove();
        const line = Object.assign(document.createElement("p"), { id: "drawn", textContent: "sb_fmd67x7c6zrl () => 3x4 != 5 --> 6" });
        line.style.cssText = ${JSON.stringify(style)};
        document.body.append(line);
      })()`);
      return await page.locator("#drawn").screenshot();
    };
    for (const family of ["--font", "--mono"]) {
      const plain = await drawn(family, 'font-feature-settings: "cv05", "cv08", "ss03", "calt" 0, "liga" 0');
      const [here, altered] = [
        await drawn(family, ""),
        await drawn(family, 'font-feature-settings: "calt"; font-variant-ligatures: normal'),
      ];
      expect(here.equals(plain), family).toBe(true);
      expect(altered.equals(plain), family).toBe(false);
    }
  });
});

describe("forms", () => {
  test("to start a run show the default limits and suggest recent folders and models", async () => {
    const folder = join(base(), "project");
    await mkdir(folder);
    const model = await script({ turns: [{ say: "Looked at." }] });
    const { page } = await openPage("/start");
    await page.getByLabel("Task").fill("Look at the project");
    await page.getByLabel("Model").fill(model);
    await page.getByLabel("Works on").selectOption("a folder on the station's machine");
    await page.getByLabel("Folder", { exact: true }).fill(folder);
    await page.getByText("Limits, name and labels").click();
    await expect.poll(() => page.getByLabel("Steps").getAttribute("placeholder")).toMatch(/^50\b/);
    expect(await page.getByLabel("Minutes").getAttribute("placeholder")).toMatch(/^30\b/);
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.waitForURL(/\/runs\/run_/);
    const id = new URL(page.url()).pathname.split("/")[2] ?? "";
    await ended(id);
    await page.goto(`${url()}/start`);
    await page.getByLabel("Works on").selectOption("a folder on the station's machine");
    const offered = (label: string) =>
      page
        .getByLabel(label, { exact: true })
        .evaluate((field) => [...((field as unknown as Offering).list?.options ?? [])].map(({ value }) => value));
    await expect.poll(() => offered("Folder")).toContain(folder);
    await expect.poll(() => offered("Model")).toContain(model);
    expect(await barriers(page)).toEqual([]);
  });

  test("to create a sandbox accept a folder, limits and labels", async () => {
    const folder = join(base(), "shown");
    await mkdir(folder);
    await writeFile(join(folder, "hello.txt"), "hello\n");
    const { page } = await openPage("/sandboxes");
    await heading(page, "Sandboxes").waitFor();
    await page.keyboard.press("n");
    const dialog = page.getByRole("dialog", { name: "New sandbox" });
    const boxOf = async (label: string) => (await dialog.getByLabel(label, { exact: true }).boundingBox()) ?? { y: -1, height: -1 };
    const [image, runtime] = [await boxOf("Image"), await boxOf("Runtime")];
    expect(runtime.y).toBeCloseTo(image.y, 0);
    expect(runtime.height).toBeCloseTo(image.height, 0);
    await dialog.getByLabel("Name").fill("in-line");
    await dialog.getByLabel("Folder").fill(folder);
    await dialog.getByLabel("Memory, MiB").fill("none");
    await dialog.getByRole("button", { name: "Create sandbox" }).click();
    await dialog.getByText("Memory must be a number above 0.").waitFor();
    await dialog.getByLabel("Memory, MiB").fill("512");
    await dialog.getByLabel("CPUs").fill("1");
    await dialog.getByLabel("Labels").fill("team=web, purpose=review");
    expect(await barriers(page)).toEqual([]);
    await picture(page, "new-sandbox");
    await dialog.getByRole("button", { name: "Create sandbox" }).click();
    await page.waitForURL(/\/sandboxes\/sb_/);
    const [sandbox] = JSON.parse((await run(["sandbox", "ls", "--json"])).text).filter(({ name }: { name?: string }) => name === "in-line");
    expect(sandbox).toMatchObject({
      workspace: { kind: "folder", path: folder, access: "overlay" },
      limits: { cpus: 1, memoryBytes: 512 * 1024 * 1024 },
      labels: { team: "web", purpose: "review", from: "console" },
    });
    expect((await run(["exec", "--sandbox", "in-line", "--", "cat", "hello.txt"])).text).toBe("hello\n");
    await run(["sandbox", "rm", "--yes", "in-line"]);
  });
});
