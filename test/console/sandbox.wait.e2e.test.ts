import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { barriers, picture, useConsole } from "../support/console.ts";
import { breakableLink } from "../support/console-link.ts";

const { openPage, run, url } = useConsole();
const PORT = 8123;
let sandbox = "";

/** Runs a command in the sandbox and returns its output. */
async function inside(...command: readonly string[]): Promise<string> {
  return (await run(["exec", "--sandbox", sandbox, "--", ...command])).text;
}

beforeAll(async () => {
  sandbox = (
    await run(["sandbox", "create", "--name", "shop", "--no-workspace", "--network", "allowed.example", "--label", "team=blue"])
  ).text.trim();
});

/** Returns the lines on the screen of the visible shell. */
async function screen(page: Page): Promise<string[]> {
  const lines = await page.locator(".xterm-rows:visible > div").allInnerTexts();
  return lines.map((line) => line.replaceAll("\u00a0", " ").trimEnd());
}
const untilShown = (page: Page, line: string) => expect.poll(() => screen(page), { timeout: 60_000 }).toContain(line);
const untilPrompt = (page: Page) =>
  expect.poll(async () => (await screen(page)).some((line) => line.endsWith("$")), { timeout: 60_000 }).toBe(true);
const counted = (lines: readonly string[]) => lines.filter((line) => /^line-\d+$/.test(line));
const allCounted = Array.from({ length: 20 }, (_, index) => `line-${index + 1}`);

describe("a sandbox's terminal", () => {
  test("continues after a disconnect and a reload, without repeating lines", async () => {
    await using station = await breakableLink(url());
    const { page } = await openPage(`/sandboxes/${sandbox}`, { at: station.url });
    await untilPrompt(page);
    // The second half is written while the page is disconnected: it waits for one file, and creates another when done.
    const until = (file: string) => `while ! test -e ${file}; do sleep 0.1; done`;
    const count = (from: number, to: number) => `for i in $(seq ${from} ${to}); do echo line-$i; done`;
    await page.keyboard.type(`${count(1, 10)}; ${until("go")}; ${count(11, 20)}; touch gone\n`);
    await untilShown(page, "line-10");
    station.cut();
    await inside("touch", "go");
    await inside("sh", "-c", until("gone"));
    station.mend();
    await untilShown(page, "line-20");
    expect(counted(await screen(page))).toEqual(allCounted);
    await page.keyboard.type("echo typed-$((40 + 2))\n");
    await untilShown(page, "typed-42");

    await page.reload();
    await untilShown(page, "typed-42");
    expect(counted(await screen(page))).toEqual(allCounted);
    await page.keyboard.type("echo again-$((1 + 1))\n");
    await untilShown(page, "again-2");
    await picture(page, "sandbox-terminal");
  });

  test("continues after its connection dies silently, without repeating lines", async () => {
    await using station = await breakableLink(url());
    const own = (await run(["sandbox", "create", "--no-workspace"])).text.trim();
    const { page } = await openPage(`/sandboxes/${own}`, { at: station.url });
    await untilPrompt(page);
    await page.keyboard.type("for i in 1 2 3; do echo line-$i; done; while ! test -e on; do sleep 0.1; done; echo line-4\n");
    await untilShown(page, "line-3");
    station.silenceStreams();
    await run(["exec", "--sandbox", own, "--", "touch", "on"]);
    await untilShown(page, "line-4");
    await page.keyboard.type("echo typed-$((50 + 5))\n");
    await untilShown(page, "typed-55");
    expect(counted(await screen(page))).toEqual(["line-1", "line-2", "line-3", "line-4"]);
    await page.close();
    await run(["sandbox", "rm", "--yes", own]);
  });

  test("has several shells that end independently", async () => {
    const { page } = await openPage(`/sandboxes/${sandbox}`);
    await untilShown(page, "again-2");
    await page.getByRole("button", { name: "New shell" }).click();
    await untilPrompt(page);
    await page.keyboard.type("echo second-$((1 + 1)); stty size\n");
    await untilShown(page, "second-2");
    await page.getByRole("button", { name: "End shell 2" }).click();
    await untilShown(page, "again-2");
    await expect.poll(() => page.getByRole("button", { name: "Shell 2", exact: true }).count()).toBe(0);
    expect(await barriers(page)).toEqual([]);
  });
});

describe("a sandbox's files", () => {
  const hostile = ["<img src=x onerror=alert(1)>.txt", "cod\u202Etxt.exe", "two\nlines"];

  test("show hostile names and contents as text", async () => {
    await inside("sh", "-c", 'for name; do printf "%s" "<script>window.stolen=1</script>" > "$name"; done', "sh", ...hostile);
    const { page } = await openPage(`/sandboxes/${sandbox}?tab=files`);
    await page.getByRole("treeitem", { name: "<img src=x onerror=alert(1)>.txt" }).click();
    await page.locator(".cm-content").getByText("<script>window.stolen=1</script>").waitFor();
    await page.getByRole("treeitem", { name: "cod⟨U+202E⟩txt.exe" }).waitFor();
    await page.getByRole("treeitem", { name: "two␊lines" }).waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await page.evaluate(() => "stolen" in globalThis)).toBe(false);
    expect(await barriers(page)).toEqual([]);
    await picture(page, "sandbox-files-hostile");
  });

  test("save edits, and ask before overwriting a change from inside", async () => {
    await inside("sh", "-c", "mkdir -p src && echo before > src/notes.md");
    const { page } = await openPage(`/sandboxes/${sandbox}?tab=files`);
    await page.getByLabel("Find files by name").fill("notes");
    await page.getByRole("button", { name: "src/notes.md" }).click();
    const text = page.getByLabel("File content");
    await text.getByText("before").waitFor();
    await text.press("Control+a");
    await page.keyboard.type("written in the browser");
    await page.keyboard.press("Control+s");
    await page.getByText("Saved.").first().waitFor();
    expect(await inside("cat", "src/notes.md")).toBe("written in the browser");

    await inside("sh", "-c", "echo changed inside > src/notes.md");
    await text.press("Control+a");
    await page.keyboard.type("once more");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog", { name: "Changed inside the sandbox" }).waitFor();
    expect(await inside("cat", "src/notes.md")).toBe("changed inside\n");
    await page.getByRole("button", { name: "Overwrite" }).click();
    await expect.poll(() => inside("cat", "src/notes.md"), { timeout: 60_000 }).toBe("once more");
  });

  test("can be created, renamed, uploaded and removed", async () => {
    const { page } = await openPage(`/sandboxes/${sandbox}?tab=files`);
    await page.getByRole("button", { name: "New folder" }).click();
    await page.getByLabel("Name", { exact: true }).fill("made");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("treeitem", { name: "made" }).waitFor();
    await page.getByLabel("Files to upload").setInputFiles({ name: "up.bin", mimeType: "application/x", buffer: Buffer.from([0, 1, 2]) });
    await page.getByText("Uploaded 1 file to /workspace/made.").waitFor();
    expect(await inside("od", "-An", "-tx1", "made/up.bin")).toBe(" 00 01 02\n");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("Name", { exact: true }).fill("renamed");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.getByRole("treeitem", { name: "renamed" }).waitFor();
    await page.getByRole("banner").or(page.locator("header")).getByRole("button", { name: "Remove" }).last().click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("treeitem", { name: "renamed" }).waitFor({ state: "detached" });
    expect(await inside("sh", "-c", "test -e made || test -e renamed || echo gone")).toBe("gone\n");
  });
});

/** A page with a WebSocket that tries to reach the console around it. */
const server = `
const http = require("node:http"), { createHash } = require("node:crypto");
const page = \`<!doctype html><p id=socket>waiting</p><p id=parent>waiting</p><p id=top>waiting</p><script>
const say = (id, text) => { document.getElementById(id).textContent = text; };
const socket = new WebSocket("ws://" + location.host + "/");
socket.onmessage = ({ data }) => say("socket", "socket says " + data);
try { parent.localStorage.getItem("caisson.token"); say("parent", "reached the console"); } catch { say("parent", "parent refused"); }
try { top.location = "http://example.invalid/"; say("top", "moved"); } catch { say("top", "top refused"); }
</script>\`;
http.createServer((request, response) => response.writeHead(200, { "content-type": "text/html" }).end(page)).on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from("hello")]));
}).listen(${PORT});
`;

test("a port's frame has a separate origin, a WebSocket, and no access to the console", async () => {
  await inside("sh", "-c", 'printf "%s" "$1" > server.cjs; nohup node server.cjs >/dev/null 2>&1 &', "sh", server);
  const { page, complaints } = await openPage(`/sandboxes/${sandbox}?tab=ports`);
  await page.getByRole("button", { name: `Show port ${PORT}` }).click();
  const frame = page.frameLocator(`iframe[title="Port ${PORT}"]`);
  await frame.getByText("socket says hello").waitFor();
  await frame.getByText("parent refused").waitFor();
  await frame.getByText("top refused").waitFor();
  expect(new URL(page.url()).pathname).toBe(`/sandboxes/${sandbox}`);
  await page.getByRole("button", { name: "Phone" }).click();
  expect(await page.locator("iframe").evaluate((element) => element.clientWidth)).toBe(390);
  await picture(page, "sandbox-ports");
  // The browser only reports that it blocked the frame's navigation.
  expect(complaints.splice(0).filter((each) => !/navigat/i.test(each))).toEqual([]);
});

test("a denied host can be allowed with one click", async () => {
  await inside("sh", "-c", "curl -s http://refused.example/ || true");
  const { page } = await openPage(`/sandboxes/${sandbox}?tab=network`);
  const line = page.getByRole("listitem").filter({ hasText: "GET refused.example:80/" });
  await line.getByRole("button", { name: "Allow" }).click();
  await page.getByText("refused.example is now allowed.").waitFor();
  await page.getByRole("button", { name: "Stop allowing refused.example" }).waitFor();
  const policy = JSON.parse((await run(["net", "show", sandbox, "--json"])).text);
  expect(JSON.stringify(policy)).toContain("refused.example");
  expect(await barriers(page)).toEqual([]);
});

test("a sandbox's page kills processes, takes snapshots and starts from them", async () => {
  const { page } = await openPage(`/sandboxes/${sandbox}?tab=processes`);
  const row = page.getByRole("row").filter({ hasText: "server.cjs" });
  await row.getByRole("button", { name: /^Kill process/ }).click();
  await page.getByRole("button", { name: "Kill", exact: true }).click();
  await row.waitFor({ state: "detached" });
  expect(await barriers(page)).toEqual([]);
  for (const [tab, sign] of [
    ["Resources", "Measured by the host."],
    ["Details", "Time per command"],
    ["Snapshots", "No snapshots of this sandbox"],
  ] as const) {
    await page.getByRole("link", { name: tab }).click();
    await page.getByText(sign).waitFor();
    expect(await barriers(page), tab).toEqual([]);
  }
  await page.getByRole("button", { name: "Create snapshot" }).click();
  await page.getByLabel("Name", { exact: true }).fill("kept");
  await page.getByRole("dialog").getByRole("button", { name: "Create snapshot" }).click();
  await page.getByRole("button", { name: "New sandbox from kept" }).click();
  await page.waitForURL((address) => !address.pathname.endsWith(sandbox));
  await untilPrompt(page);
  await page.keyboard.type("cat src/notes.md; echo\n");
  await untilShown(page, "once more");
});

test("sandboxes can be filtered, selected by keyboard and removed together", async () => {
  await Promise.all(["one", "two"].map((name) => run(["sandbox", "create", "--name", name, "--no-workspace", "--label", "kind=spare"])));
  const { page } = await openPage("/sandboxes?label=kind%3Dspare");
  const list = page.getByRole("grid", { name: "Sandboxes" });
  await expect.poll(() => list.getByRole("row").count()).toBe(2);
  await run(["label", "two", "kind=spare", "seen=yes"]);
  await list.getByRole("row", { name: /two/ }).getByRole("img", { name: "Activity in the last three minutes" }).waitFor();
  await page.getByRole("button", { name: "Save filter" }).click();
  await page.getByLabel("Name", { exact: true }).fill("spare ones");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("button", { name: "spare ones", exact: true }).click();
  await expect.poll(() => list.getByRole("row").count()).toBe(2);
  expect(new URL(page.url()).searchParams.get("label")).toBe("kind=spare");
  await list.focus();
  for (const key of ["j", "x", "j", "x", "Delete"]) await page.keyboard.press(key);
  await page.getByRole("dialog", { name: "Remove 2 sandboxes?" }).getByRole("button", { name: "Remove" }).click();
  await page.getByText("No matching sandboxes").waitFor();
  await page.getByRole("button", { name: /^Show all/ }).click();
  await page.getByLabel("Search sandboxes").fill("shop");
  await expect.poll(() => list.getByRole("row").count()).toBe(1);
  expect(page.url()).toContain("q=shop");
  expect(await barriers(page)).toEqual([]);
  const phone = await openPage("/sandboxes", { phone: true, dark: true });
  await phone.page.getByText("shop").first().click();
  await untilPrompt(phone.page);
  expect(await barriers(phone.page)).toEqual([]);
});
