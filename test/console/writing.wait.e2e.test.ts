import { execFileSync } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const caisson = useConsole();
const { openPage, base, run } = caisson;
const { startRun, view } = scriptedRuns(caisson);

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const ended = (id: string) => expect.poll(async () => (await view(id)).status, { timeout: 90_000 }).toBe("ended");
const asking = (page: Page) => page.getByRole("dialog", { name: "Leave without saving?" });

describe("unsaved text", () => {
  test("is marked, and every way to leave it asks first", async () => {
    const sandbox = (await run(["sandbox", "create", "--no-workspace"])).text.trim();
    await run(["exec", "--sandbox", sandbox, "--", "sh", "-c", "echo before > notes.md; echo other > other.md"]);
    const { page } = await openPage("/inbox");
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    await page.getByRole("link", { name: "Sandboxes" }).click();
    await page.getByRole("grid", { name: "Sandboxes" }).getByText(sandbox).click();
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("treeitem", { name: "notes.md" }).click();
    const text = page.getByLabel("File content");
    await text.getByText("before").waitFor();
    expect(await page.getByRole("img", { name: "not saved" }).count()).toBe(0);
    await text.press("Control+a");
    await page.keyboard.type("written and not saved");
    // The mark is beside the file's name, in the tree and on the tab.
    await expect.poll(() => page.getByRole("img", { name: "not saved" }).count()).toBe(3);
    await picture(page, "not-saved");
    const here = page.url();
    const ways: Record<string, () => Promise<unknown>> = {
      place: () => page.getByRole("link", { name: "Inbox" }).click(),
      tab: () => page.getByRole("link", { name: "Ports" }).click(),
      file: () => page.getByRole("treeitem", { name: "other.md" }).click(),
      shortcut: async () => {
        await page.evaluate("document.activeElement.blur()");
        await page.keyboard.press("g");
        await page.keyboard.press("r");
      },
      back: () => page.evaluate("history.back()"),
    };
    for (const [name, leave] of Object.entries(ways)) {
      await leave();
      await asking(page).getByText("Your changes to notes.md are not saved.").waitFor();
      if (name === "place") expect(await barriers(page)).toEqual([]);
      // Enter picks the answer that loses nothing.
      await page.keyboard.press("Enter");
      await asking(page).waitFor({ state: "detached" });
      await text.getByText("written and not saved").waitFor();
      expect(page.url(), name).toBe(here);
    }
    let dialogCount = 0;
    page.on("dialog", (dialog) => {
      dialogCount += 1;
      void dialog.dismiss();
    });
    await page.close({ runBeforeUnload: true });
    await expect.poll(() => dialogCount).toBe(1);
    await text.getByText("written and not saved").waitFor();

    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").first().waitFor();
    await expect.poll(() => page.getByRole("img", { name: "not saved" }).count()).toBe(0);
    await page.getByRole("treeitem", { name: "other.md" }).click();
    await text.getByText("other").waitFor();
    await text.press("End");
    await page.keyboard.type("!");
    await page.evaluate("history.back()");
    await asking(page).getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Sandboxes", exact: true }).waitFor();
    expect((await run(["exec", "--sandbox", sandbox, "--", "cat", "notes.md", "other.md"])).text).toBe("written and not savedother\n");
    await run(["sandbox", "rm", "--yes", sandbox]);
  });
});

describe("a review", () => {
  /** Returns a finished run that replaced a line and wrote a new file in a separate repository. */
  async function changedRun(): Promise<{ id: string; folder: string }> {
    const folder = await mkdtemp(join(base(), "reviewed-"));
    const git = (...argv: string[]) => execFileSync("git", ["-C", folder, ...argv], { encoding: "utf8" });
    git("init", "-q", "-b", "main");
    await writeFile(join(folder, "one.txt"), "first\nsecond as it was\nthird\n");
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
    const turns = [{ calls: [write("one.txt", "first\nsecond as it is\nthird\n"), write("two.txt", "new\n")] }, { say: "Written." }];
    const id = await startRun({ turns }, { source: { kind: "folder", path: folder } });
    await ended(id);
    return { id, folder };
  }

  test("takes comments on both sides, and still shows the changes once applied", async () => {
    const { id, folder } = await changedRun();
    const { page } = await openPage(`/runs/${id}?tab=changes&file=one.txt&split=1`);
    const box = page.getByLabel("Comment on one.txt", { exact: false });
    const belowLine = async (line: string) => {
      await expect.poll(() => box.evaluate("document.activeElement?.tagName")).toBe("TEXTAREA");
      const [at, boxBounds] = [
        await page.locator(".cm-line, .cm-deletedLine", { hasText: line }).last().boundingBox(),
        await box.boundingBox(),
      ];
      expect((boxBounds?.y ?? 0) - ((at?.y ?? 0) + (at?.height ?? 0))).toBeLessThan(80);
      expect(boxBounds?.y ?? 0).toBeGreaterThan(at?.y ?? 0);
    };
    await page.locator(".cm-merge-a .cm-lineNumbers .cm-gutterElement", { hasText: /^2$/ }).click();
    await page.getByLabel("Comment on one.txt, line 2 before the change").waitFor();
    await belowLine("second as it was");
    expect(await barriers(page)).toEqual([]);
    await picture(page, "comment-left");
    await page.keyboard.type("Why was this removed?");
    await page.keyboard.press("Control+Enter");
    const comments = page.getByRole("region", { name: "Your comments" });
    await comments.getByText("Why was this removed?").waitFor();
    await comments.getByText("one.txt:2 (before the change)").waitFor();
    await page.locator(".cm-merge-b .cm-lineNumbers .cm-gutterElement", { hasText: /^3$/ }).click();
    await page.getByLabel("Comment on one.txt, line 3").fill("And this?");
    await belowLine("third");
    await page.keyboard.press("Control+Enter");
    await comments.getByText("And this?").waitFor();
    // In the unified view a removed line has no number, so the test clicks the line itself.
    await page.getByRole("button", { name: "Unified" }).click();
    await page.locator(".cm-deletedLine", { hasText: "second as it was" }).click();
    await page.getByLabel("Comment on one.txt, line 2 before the change").waitFor();
    await belowLine("second as it was");
    await picture(page, "comment-removed");
    await page.keyboard.press("Escape");
    await expect.poll(() => box.count()).toBe(0);
    // Unsent comments survive opening another file.
    await page.getByRole("button", { name: /two\.txt/ }).click();
    await page.locator(".cm-content").getByText("new").waitFor();
    await page.getByRole("link", { name: "Timeline" }).click();
    await asking(page).getByText("You have 2 unsent comments.").waitFor();
    await asking(page).getByRole("button", { name: "Stay" }).click();
    for (const _ of [1, 2]) await comments.getByRole("button", { name: "Remove comment" }).first().click();

    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
    await page.getByText(/2 files were applied/).waitFor();
    await page.getByRole("list", { name: "Applied files" }).getByText("one.txt").click();
    await page.getByText("-second as it was").waitFor();
    await page.getByText("+second as it is").waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, "applied");
    // The applied changes remain visible after a reload and on the command line.
    await page.reload();
    await page.getByText(/2 files were applied/).waitFor();
    const plain = await run(["diff", id]);
    expect([plain.code, plain.text]).toEqual([0, ""]);
    expect(plain.stderr).toMatch(/nothing is left to apply: 2 files were applied to .* ago; `caisson diff --applied` shows them/);
    const applied = await run(["diff", "--applied", id]);
    expect(applied.text).toContain("-second as it was\n+second as it is\n");
    expect(applied.stderr).toContain(`2 files were applied to ${folder}`);
    expect((await run(["diff", "--applied", "--stat", id, "two.txt"])).text).toMatch(/^added +two\.txt +\+1 −0/);
  });
});
