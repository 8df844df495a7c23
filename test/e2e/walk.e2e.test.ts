import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { createScreens, expectScreen } from "../support/screens.ts";
import { startTerminal, type Terminal } from "../support/tmux.ts";
import { root } from "./caisson-process.ts";

/**
 * The first hour of a new user, in a real terminal, screen by screen. The screens are stored as files, so a review sees
 * every change of the output. The README's pictures are made from them.
 */

let home = "";
let terminal: Terminal;
let screens: ReturnType<typeof createScreens>;
const shop = () => join(home, "shop");
const env = () => ({
  PATH: `${root}:${process.env.PATH}`,
  HOME: home,
  CAISSON_HOME: join(home, ".caisson"),
  CAISSON_MODEL: `scripted:${join(home, "model.json")}`,
  NO_COLOR: "1",
  // The machine's pager might wait even at the end of a text that fits.
  GIT_PAGER: "cat",
});

beforeAll(async () => {
  // A fixed place, wherever TMPDIR is, because the length of a row depends on the folder's name.
  home = mkdtempSync("/tmp/caisson-walk-");
  screens = createScreens({ [home]: "~" });
  makeShop();
  // Setup is not part of the walk.
  execFileSync("caisson", ["--version"], { env: env() });
  terminal = await startTerminal({ cwd: shop(), env: env(), cols: 130, rows: 60 });
  // Root's prompt would be different.
  await terminal.type("PS1='$ '\n");
});
afterAll(async () => {
  await terminal?.[Symbol.asyncDispose]();
  execFileSync("caisson", ["sandbox", "rm", "--all", "--yes"], { env: env() });
  rmSync(home, { recursive: true, force: true });
});

/** Creates a small repository with a defect and a test that shows it. */
function makeShop(): void {
  mkdirSync(shop(), { recursive: true });
  const files = {
    "total.sh": '# Adds up prices.\nsum=0\nshift\nfor price in "$@"; do sum=$((sum + price)); done\necho $sum\n',
    "test.sh": 'got=$(sh total.sh 1 2 3)\n[ "$got" = 6 ] && echo "ok" || { echo "expected 6, got $got"; exit 1; }\n',
    ".gitignore": "*.log\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(shop(), name), text);
  const git = (...argv: string[]) => execFileSync("git", ["-C", shop(), ...argv], { env: env() });
  git("init", "--quiet", "--initial-branch", "main");
  git("config", "--global", "user.name", "Ada");
  git("config", "--global", "user.email", "ada@example.com");
  git("add", ".");
  git("commit", "--quiet", "-m", "A shop");
}

const modelSays = (script: Script) => writeFileSync(join(home, "model.json"), JSON.stringify(script));
const bash = (command: string) => ({ tool: "bash", arguments: { command } });

/** A command, or the answer to a question. */
type Typed = string | { asked: RegExp; type: string };

async function enter(line: string): Promise<void> {
  await terminal.type(line);
  await terminal.press("Enter");
}

/** Types the lines into an empty terminal, and compares the resulting screen with the stored one. */
async function scene(name: string, ...typed: Typed[]): Promise<string> {
  await enter("clear");
  await terminal.seeOnScreen(/^\$\n$/);
  let prompts = 1;
  for (const [at, each] of typed.entries()) {
    if (typeof each === "string") {
      prompts += 1;
      await enter(each);
    } else {
      await terminal.seeOnScreen(each.asked);
      await enter(each.type);
    }
    if (typeof typed[at + 1] === "object") continue;
    await terminal.seeOnScreen((text) => text.endsWith("\n$\n") && text.match(/^\$(?: |$)/gm)?.length === prompts);
  }
  const screen = screens.steady(await terminal.screen()).replace(/\$\n$/, "");
  expectScreen(join(import.meta.dirname, "walk", `${name}.txt`), screen);
  return screen;
}

test("doctor reports what works", async () => {
  const screen = await scene("doctor", "caisson doctor | grep -E '^(oci|host) '");
  expect(screen).toContain("oci  usable");
});

test("exec shows the folder, drops changes and denies the network", async () => {
  await scene(
    "exec",
    "caisson exec -- sh test.sh",
    "caisson exec -- rm -rf .git total.sh",
    "ls -A",
    "caisson exec -- cat /etc/shadow",
    "caisson exec --network example.org -- curl -s https://example.com",
  );
});

const edit = (path: string, old: string, text: string) => ({ tool: "edit", arguments: { path, old, new: text } });

/** One script for the whole conversation, from its first turn to its last. */
const fixing: Script["turns"] = [
  { say: "I run the test first.", calls: [bash("sh test.sh | tee test.log")] },
  { say: "The first price is left out.", calls: [edit("total.sh", "shift\n", ""), bash("sh test.sh")] },
  { say: "It passes. I push it.", calls: [bash("git push origin main")] },
  { say: "The total counts every price now. Nothing is pushed." },
];

test("run works on a copy, and asks before it pushes", async () => {
  modelSays({ turns: fixing });
  await scene("run", 'caisson run "fix the test"', { asked: /May coder do this\?[\s\S]*n no/, type: "n" });
  await scene("changes", "caisson ps", "caisson diff", "git status --short", "caisson apply", "git status --short");
});

test("run --continue continues the conversation, whose work becomes a branch", async () => {
  modelSays({
    turns: [
      ...fixing,
      { say: "A word in the comment, then.", calls: [edit("total.sh", "up prices", "up all prices")] },
      { say: "The comment says so." },
    ],
  });
  await scene("continue", 'caisson run --continue "say in the comment that it is all of them"');
  await scene("branch", "caisson branch", "git branch --list", "caisson session ls");
});

test("discard asks before it loses work", async () => {
  modelSays({ turns: [{ calls: [{ tool: "write", arguments: { path: "notes.txt", content: "perhaps\n" } }] }, { say: "Noted." }] });
  await scene(
    "discard",
    'caisson run "take notes"',
    "caisson discard",
    { asked: /Remove it anyway\? \[y\/N\]/, type: "n" },
    "caisson discard --yes",
  );
});

test("chat runs several turns", async () => {
  modelSays({
    turns: [{ say: "Sure.", calls: [edit("total.sh", "echo $sum", 'echo "$sum"')] }, { say: "The sum is quoted now." }],
  });
  await scene(
    "chat",
    "caisson chat",
    { asked: /^›/m, type: "quote the sum" },
    { asked: /not applied: \/diff to review[\s\S]*\n›/, type: "/diff" },
    { asked: /^\+echo[\s\S]*\n›/m, type: "/exit" },
  );
});

test("a kept sandbox has a name, and mounts further folders", async () => {
  mkdirSync(join(home, "prices"));
  writeFileSync(join(home, "prices", "list.txt"), "1\n2\n3\n");
  await scene(
    "sandboxes",
    "caisson sandbox create --name shop --mount ~/prices",
    "caisson exec -s shop -- sh -c 'sh total.sh $(cat /mnt/prices/list.txt)'",
    "caisson exec -s shop -- touch /mnt/prices/more.txt",
    "caisson sandbox ls",
    "caisson cp shop:/workspace/total.sh - | tar -t",
    "caisson sandbox rm shop",
  );
});

test("rm and prune ask before they lose work", async () => {
  await scene(
    "tidying-up",
    "caisson sandbox create --name spare",
    "caisson exec -s spare -- touch more.txt",
    "caisson rm spare",
    { asked: /Remove it anyway\? \[y\/N\]/, type: "y" },
    "caisson prune --older-than 0",
    { asked: /Remove it\? \[y\/N\]/, type: "y" },
    // Only these rows: they are sorted by size, and the order of the others differs between machines.
    "caisson df | grep -E 'SIZE|sandboxes|sessions'",
  );
});

test("commands refuse the wrong folder", async () => {
  await scene("wrong-place", "cd ~", "caisson exec -- ls", "cd /etc", "caisson run 'tidy up'", "cd ~/shop");
});
