import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { createScreens, expectScreen } from "../support/screens.ts";
import { startTerminal, type Terminal } from "../support/tmux.ts";
import { root } from "./caisson-process.ts";

/**
 * What a new user does in the first hour, in a real terminal, screen by screen. The screens are files, so that a change
 * of anything that is shown is seen in review; the README's pictures are made of them.
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
  // A machine may have one that waits at the end of a text that fits.
  GIT_PAGER: "cat",
});

beforeAll(async () => {
  // A row is as long as the folder's name makes it: wherever TMPDIR is, this is here.
  home = mkdtempSync("/tmp/caisson-walk-");
  screens = createScreens({ [home]: "~" });
  makeShop();
  // Set-up is no part of the walk.
  execFileSync("caisson", ["--version"], { env: env() });
  terminal = await startTerminal({ cwd: shop(), env: env(), cols: 130, rows: 60 });
  // Root's would be another.
  await terminal.type("PS1='$ '\n");
});
afterAll(async () => {
  await terminal?.[Symbol.asyncDispose]();
  execFileSync("caisson", ["sandbox", "rm", "--all", "--yes"], { env: env() });
  rmSync(home, { recursive: true, force: true });
});

/** A small repository with a defect, and a test that shows it. */
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

/** A command, or what is typed once something was asked. */
type Typed = string | { asked: RegExp; type: string };

async function enter(line: string): Promise<void> {
  await terminal.type(line);
  await terminal.press("Enter");
}

/** Types it into an empty terminal, line by line, and compares the whole screen that comes of it. */
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

test("doctor says what works", async () => {
  const screen = await scene("doctor", "caisson doctor | grep -E '^(oci|host) '");
  expect(screen).toContain("oci  usable");
});

test("exec: the folder is there, changes are dropped, and the network is closed", async () => {
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

/** A conversation is one script from its first word to its last. */
const fixing: Script["turns"] = [
  { say: "I run the test first.", calls: [bash("sh test.sh | tee test.log")] },
  { say: "The first price is left out.", calls: [edit("total.sh", "shift\n", ""), bash("sh test.sh")] },
  { say: "It passes. I push it.", calls: [bash("git push origin main")] },
  { say: "The total counts every price now. Nothing is pushed." },
];

test("run: an agent works on a copy, and asks before it pushes", async () => {
  modelSays({ turns: fixing });
  await scene("run", 'caisson run "fix the test"', { asked: /May coder do this\?[\s\S]*n no/, type: "n" });
  await scene("changes", "caisson ps", "caisson diff", "git status --short", "caisson apply", "git status --short");
});

test("run --continue: the conversation goes on, and its work becomes a branch", async () => {
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

test("discard asks before work is lost", async () => {
  modelSays({ turns: [{ calls: [{ tool: "write", arguments: { path: "notes.txt", content: "perhaps\n" } }] }, { say: "Noted." }] });
  await scene(
    "discard",
    'caisson run "take notes"',
    "caisson discard",
    { asked: /Remove it all the same\? \[y\/N\]/, type: "n" },
    "caisson discard --yes",
  );
});

test("chat: a conversation, turn after turn", async () => {
  modelSays({
    turns: [{ say: "Sure.", calls: [edit("total.sh", "echo $sum", 'echo "$sum"')] }, { say: "The sum is quoted now." }],
  });
  await scene(
    "chat",
    "caisson chat",
    { asked: /^›/m, type: "quote the sum" },
    { asked: /not applied: \/diff shows it[\s\S]*\n›/, type: "/diff" },
    { asked: /^\+echo[\s\S]*\n›/m, type: "/exit" },
  );
});

test("a sandbox that stays has a name; further folders are mounted where they are wanted", async () => {
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

test("what nobody uses any more is found and removed, and what would be lost is asked about", async () => {
  await scene(
    "tidying-up",
    "caisson sandbox create --name spare",
    "caisson exec -s spare -- touch more.txt",
    "caisson rm spare",
    { asked: /Remove it all the same\? \[y\/N\]/, type: "y" },
    "caisson prune --older-than 0",
    { asked: /Remove it\? \[y\/N\]/, type: "y" },
    // The largest is first: which of the others is larger differs between machines.
    "caisson df | grep -E 'SIZE|sandboxes|sessions'",
  );
});

test("the wrong place is refused", async () => {
  await scene("wrong-place", "cd ~", "caisson exec -- ls", "cd /etc", "caisson run 'tidy up'", "cd ~/shop");
});
