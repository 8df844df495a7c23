import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../e2e/caisson-process.ts";
import { barriers, picture, useConsole } from "../support/console.ts";

const { openPage, base, url, token } = useConsole();

/** Everything that the model says and writes would do harm as HTML, a link or a terminal sequence. */
const script = {
  turns: [
    {
      think: "Let me <b>think</b>.",
      say: "**Words** <script>globalThis.taken = 1</script> <img src=x onerror='globalThis.taken = 2'> [here](javascript:globalThis.taken=3) ![p](http://pictures.example/x.png)",
      calls: [
        {
          tool: "bash",
          arguments: {
            command:
              "printf '\\033[31mred\\033[0m\\033]0;gone\\007 \\033[2Jstays <script>globalThis.taken = 4</script>\\n'; echo x > \"$(printf 'name\\342\\200\\256txt.exe')\"",
          },
        },
      ],
    },
    { calls: [{ tool: "edit", arguments: { path: "price.js", old: "sum * discountPercent", new: "(sum * discountPercent) / 100" } }] },
    { calls: [{ tool: "bash", arguments: { command: "curl -sS -m 5 http://denied.example/; true" } }] },
    { say: "I got the message.", expect: { news: ["the other way"] }, calls: [{ tool: "bash", arguments: { command: "sleep 600" } }] },
    { say: "I see what you mean.", expect: { news: ["price.js:4", "why so"] } },
  ],
};

async function startRun(): Promise<{ run: string; folder: string }> {
  const folder = join(base(), "project");
  await cp(join(root, "examples", "demo", "project"), folder, { recursive: true });
  const model = join(base(), "script.json");
  await writeFile(model, JSON.stringify(script));
  const answer = await fetch(`${url()}/v1/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${token()}`, "content-type": "application/json" },
    body: JSON.stringify({
      task: "Mend <i>it</i>",
      model: `scripted:${model}`,
      source: { kind: "folder", path: folder },
      attended: true,
      settings: {
        permissions: { "bash:printf*": "ask", "bash:curl*": "ask" },
        network: { mode: "allow", rules: [{ host: "nothing.example" }] },
      },
    }),
  });
  return { run: ((await answer.json()) as { run: string }).run, folder };
}

describe("a run's page", () => {
  test("steers, stops, reviews and applies the run, and shows its output as text", async () => {
    const { run, folder } = await startRun();
    const { page } = await openPage(`/runs/${run}`);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await page.getByText("Edited price.js").waitFor();
    await page.getByLabel("Message to the agent").fill("the other way");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("not read yet").waitFor();
    await page.getByRole("button", { name: /^Always allow/ }).click();
    await page.getByText("I got the message.").waitFor();
    await page.getByText("read in step 4").waitFor();
    await page.getByRole("button", { name: "Allow denied.example" }).click();
    await page.getByText("denied.example:80 is now allowed.").waitFor();
    expect(await barriers(page)).toEqual([]);
    await picture(page, "run");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await page.getByText("Ended: cancelled").waitFor();

    await page.goto(`${url()}/runs/${run}?event=1`);
    await page.getByText("<script>globalThis.taken = 1</script>").waitFor();
    await page.getByRole("button", { name: /^bash.*printf/ }).click();
    await page.locator("pre", { hasText: "red stays <script>globalThis.taken = 4</script>" }).waitFor();
    expect(await page.evaluate(() => (globalThis as { taken?: number }).taken)).toBeUndefined();

    await page.getByRole("link", { name: "Changes", exact: true }).click();
    await page.getByRole("button", { name: /name⟨U\+202E⟩txt\.exe/ }).waitFor();
    await page.getByRole("button", { name: /price\.js/ }).click();
    await page.locator(".cm-lineNumbers .cm-gutterElement", { hasText: /^4$/ }).click();
    await page.getByLabel("Comment on price.js, line 4").fill("why so");
    await page.getByRole("button", { name: "Add comment" }).click();
    await page.getByRole("button", { name: "Send 1 comment to the agent" }).click();
    await page.getByText("Comments sent to the agent.").waitFor();
    await page.goto(`${url()}/runs/${run}?find=what+you+mean`);
    await page.getByRole("main").getByText("done", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Next match" }).click();
    await page.getByText("I see what you mean.").waitFor();

    await page.getByRole("link", { name: "Changes", exact: true }).click();
    await picture(page, "changes");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
    await page.getByText(/files? applied to/).waitFor();
    expect(await readFile(join(folder, "price.js"), "utf8")).toContain("(sum * discountPercent) / 100");
  });
});
