import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { useConsole } from "../support/console.ts";
import { scriptedRuns } from "../support/console-runs.ts";

const caisson = useConsole();
const { openPage, run, tokenFor, url } = caisson;
const { startRun } = scriptedRuns(caisson);

/** Records what the content security policy blocks in a page from now on. Returns a function that reads the record. */
async function watchPolicy(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(`globalThis.stopped = [];
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
      stopped.push(effectiveDirective + " " + blockedURI);
    });`);
  return () => page.evaluate(() => (globalThis as unknown as { stopped: string[] }).stopped);
}

describe("two owners on one station", () => {
  test("never see each other's runs and sandboxes", async () => {
    const owners = await Promise.all(["ada", "bo"].map(openOwner));
    const idsByOwner = new Map<string, { id: string; sandbox: string }>();
    for (const { name, token } of owners) {
      const ask = async (path: string, body: object) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const answer = await fetch(`${url()}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
        if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
        return (await answer.json()) as never;
      };
      const { run: id } = await ask("/v1/runs", { task: `${name}'s own task`, name: `work-of-${name}`, model: "scripted:demo" });
      const { id: sandbox } = await ask("/v1/sandboxes", { spec: { name: `box-of-${name}` } });
      idsByOwner.set(name, { id, sandbox });
    }
    for (const [at, own] of owners.entries()) {
      const other = owners[1 - at] as typeof own;
      const { id, sandbox } = idsByOwner.get(own.name) ?? { id: "", sandbox: "" };
      // The owner's own run appears without a reload.
      await own.page.getByRole("grid", { name: "Runs" }).getByText(`${own.name}'s own task`).waitFor();
      await other.page.goto(`${url()}/runs/${id}`);
      await other.page.getByText(/there is no run/i).waitFor();
      await other.page.goto(`${url()}/sandboxes/${sandbox}`);
      await other.page.getByText("There is no such sandbox").waitFor();
      await other.page.goto(`${url()}/sandboxes`);
      await other.page.getByRole("grid", { name: "Sandboxes" }).getByText(`box-of-${other.name}`).waitFor();
      await other.page.keyboard.press("Control+k");
      await other.page.getByPlaceholder("A page, a run, a sandbox…").fill(`of-${own.name}`);
      await other.page.getByText("No matches.").waitFor();
      await other.page.goto(`${url()}/runs`);
      await other.page.getByRole("grid", { name: "Runs" }).getByText(`${other.name}'s own task`).waitFor();
    }
    // The other owner's browser received no message or response that names the owner's run or sandbox.
    for (const { name, heard: messages } of owners) {
      const text = messages.join("\n");
      expect(text).toContain(`${name}'s own task`);
      for (const secret of [name === "ada" ? "bo's own task" : "ada's own task", name === "ada" ? "box-of-bo" : "box-of-ada"])
        expect(text).not.toContain(secret);
    }
  });

  async function openOwner(name: string) {
    const token = await tokenFor(`${name}-laptop`, ["--owner", name]);
    const { page } = await openPage("/runs", { token });
    const messages = hearEverything(page);
    await page.getByText("No runs yet").waitFor();
    return { name, token, page, heard: messages };
  }

  /** Collects every live stream message and every API response that a page receives. */
  function hearEverything(page: Page): readonly string[] {
    const messages: string[] = [];
    page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => messages.push(String(payload))));
    page.on("response", (response) => {
      if (!response.url().includes("/v1/")) return;
      response.text().then(
        (text) => messages.push(text),
        () => {},
      );
    });
    return messages;
  }
});

const hostile = "<img src=x onerror=globalThis.taken=1><script>globalThis.taken=2</script>";
const escapes = [
  "\\033]0;taken title\\007",
  "\\033]52;c;dGFrZW4=\\007",
  "\\033]8;;javascript:globalThis.taken=3\\033\\\\press me\\033]8;;\\033\\\\",
  "\\033]8;;http://elsewhere.example/\\033\\\\a page\\033]8;;\\033\\\\",
  "\\033[2J\\033[31mafter\\033[0m",
];

describe("hostile content", () => {
  test("of a run is always rendered as text", async () => {
    await startRun(
      {
        turns: [
          {
            think: `thought ${hostile}`,
            say: `said ${hostile} [press](javascript:globalThis.taken=4) [out](http://elsewhere.example/) ![p](http://elsewhere.example/p.png)\n\n<iframe src="http://elsewhere.example/"></iframe>`,
            calls: [{ tool: "bash", arguments: { command: `printf '${escapes.join("")}'; echo '${hostile}'` } }],
          },
          { calls: [{ tool: "write", arguments: { path: "a‮gnp.exe", content: hostile } }] },
          { calls: [{ tool: "bash", arguments: { command: `echo asked '${hostile}'` } }] },
          { say: "Over." },
        ],
      },
      { task: `task ${hostile}`, labels: { kind: "hostile" }, settings: { permissions: { "bash:echo asked*": "ask" } } },
    );
    const { page } = await openPage("/inbox");
    const stopped = await watchPolicy(page);
    const fetched: string[] = [];
    page.on("request", (request) => fetched.push(new URL(request.url()).host));
    await page.getByText(`asked '${hostile}'`).waitFor();
    await page.getByRole("link", { name: `task ${hostile}` }).click();
    await page.getByRole("heading", { name: `task ${hostile}` }).waitFor();
    const timeline = page.getByRole("log", { name: "Timeline" });
    await timeline.getByRole("button", { name: "Allow", exact: true }).click();
    await timeline.getByText("Over.").waitFor();
    await page.setViewportSize({ width: 1360, height: 5_000 });
    const folded = timeline.locator("button[aria-expanded=false]");
    while ((await folded.count()) > 0) await folded.first().click();
    await timeline.getByText(`thought ${hostile}`, { exact: true }).waitFor();
    await timeline.getByText(`said ${hostile}`).waitFor();
    await timeline.locator("pre", { hasText: "after" }).first().waitFor();
    expect(await timeline.getByRole("link", { name: "press" }).count()).toBe(0);
    expect(await timeline.getByRole("link", { name: "out" }).getAttribute("rel")).toContain("noopener");
    expect(await timeline.locator("img, iframe, script").count()).toBe(0);
    // The policy blocked nothing of the console's, and the page fetched only from the station.
    expect(await stopped()).toEqual([]);
    expect(new Set(fetched)).toEqual(new Set([new URL(url()).host]));
    expect(await page.evaluate(() => "taken" in globalThis)).toBe(false);
    expect(await page.title()).not.toContain("taken title");
  });

  test("that reaches a page is blocked by the policy", async () => {
    const { page, complaints } = await openPage("/runs");
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    const stopped = await watchPolicy(page);
    await page.evaluate(`
      const put = (name, attributes, text = "") => {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.textContent = text;
        document.body.append(element);
        return element;
      };
      put("script", {}, "globalThis.taken = 1");
      put("script", { src: "http://elsewhere.example/x.js" });
      put("img", { src: "http://elsewhere.example/x.png" });
      put("iframe", { src: "http://elsewhere.example/" });
      put("button", { onclick: "globalThis.taken = 2" }).click();
      put("a", { href: "javascript:globalThis.taken=3" }).click();
      fetch("http://elsewhere.example/").catch(() => {});
      undefined;`);
    await expect
      .poll(async () => [...new Set((await stopped()).map((each) => each.split(" ")[0]))].sort())
      .toEqual(["connect-src", "frame-src", "img-src", "script-src-attr", "script-src-elem"]);
    expect(await page.evaluate(() => "taken" in globalThis)).toBe(false);
    // The browser reported the violations, as it should.
    expect(complaints.splice(0).length).toBeGreaterThan(0);
  });

  test("in a terminal cannot set the title, use the clipboard or open links unasked", async () => {
    const sandbox = (await run(["sandbox", "create", "--name", "tricks", "--no-workspace"])).text.trim();
    const { page, context } = await openPage(`/sandboxes/${sandbox}`);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const stopped = await watchPolicy(page);
    const screen = async () => (await page.locator(".xterm-rows:visible > div").allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
    await expect.poll(screen, { timeout: 60_000 }).toMatch(/\$/);
    await page.evaluate('navigator.clipboard.writeText("mine")');
    await page.keyboard.type(`printf '${escapes.join("")}'; echo '${hostile}'; echo reached-$((1 + 1))\n`);
    await expect.poll(screen, { timeout: 60_000 }).toContain("reached-2");
    expect(await screen()).toContain(hostile);
    expect(await page.title()).toContain("tricks");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("mine");
    expect(await page.evaluate(() => "taken" in globalThis)).toBe(false);
    expect(await stopped()).toEqual([]);
  });
});
