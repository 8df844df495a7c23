import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { startTerminal, type Terminal } from "../support/tmux.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const edit = (path: string, old: string, fresh: string) => ({ tool: "edit", arguments: { path, old, new: fresh } });

/** A terminal in which `caisson chat` was just started on a folder, with a script for a model. */
async function startChat(
  folder: string,
  options: { script?: Script; argv?: string; cols?: number; rows?: number } = {},
): Promise<Terminal> {
  const { script, argv = "chat", cols = 90, rows = 30 } = options;
  const model = script === undefined ? "" : ` --model ${await cli.script(script)}`;
  const terminal = await startTerminal({ cwd: folder, env: cli.environment({}), cols, rows });
  await terminal.type(`clear; ${cli.commandLine()} ${argv}${model}; echo code=$?\n`);
  await terminal.see(/^›$/m);
  return terminal;
}

describe("a chat", () => {
  test("goes turn after turn: words, cards, diffs, undo, apply; and can be left and come back to", async () => {
    const folder = await cli.folder({ "sum.js": "export const sum = (a, b) => a - b;\n", "sum.test.js": "one\n" });
    const script: Script = {
      turns: [
        { say: "I will fix it.", calls: [edit("sum.js", "a - b", "a + b")] },
        { say: "Fixed the sum." },
        { calls: [bash("echo two >> sum.test.js")], expect: { news: ["look at @sum.test.js"] } },
        { say: "Added a line." },
        { say: "As it was.", expect: { news: ["took back what your last turn changed", "and now"] } },
      ],
    };
    await using terminal = await startChat(folder, { script });
    await terminal.type("fix the sum");
    await terminal.press("Enter");
    // Of the run that begins just now, whose own lines may come between.
    await terminal.type("/cost");
    await terminal.press("Enter");
    await terminal.see(/› fix the sum\n[\s\S]*› \/cost\n[\s\S]*^\$0[^\n]* of work/m);
    const first = await terminal.see(/Fixed the sum\.[\s\S]*not applied: \/diff/);
    expect(first).toMatch(/› fix the sum\n/);
    expect(first).toMatch(/✓ edit sum\.js[^\n]*\n +modified sum\.js \+1 −1\n +-a - b\n +\+a \+ b\n/);
    expect(first).toMatch(/done after 2 steps/);

    await terminal.type("look at @sum.t");
    await terminal.press("Tab");
    await terminal.seeOnScreen(/› look at @sum\.test\.js$/m);
    await terminal.press("Enter");
    await terminal.see(/Added a line\.[\s\S]*modified +sum\.test\.js +\+1 −0\n[^\n]*not applied/);

    await terminal.type("/undo");
    await terminal.press("Enter");
    await terminal.see(/Files are as they were before the last turn:\n +sum\.test\.js\n/);
    await terminal.type("and now");
    await terminal.press("Enter");
    const third = await terminal.see(/As it was\.[\s\S]*modified +sum\.js +\+1 −1\n[^\n]*not applied/);
    expect(third.slice(third.lastIndexOf("As it was."))).not.toContain("sum.test.js");

    await terminal.type("/diff");
    await terminal.press("Enter");
    await terminal.see(/\+export const sum = \(a, b\) => a \+ b;/);
    expect(await readFile(join(folder, "sum.js"), "utf8")).toContain("a - b");
    await terminal.type("/apply");
    await terminal.press("Enter");
    await terminal.see(/1 file applied to /);
    expect(await readFile(join(folder, "sum.js"), "utf8")).toContain("a + b");

    await terminal.press("C-d");
    const end = await terminal.see(/caisson chat --continue run_\w+[\s\S]*code=0/);
    expect(end).not.toMatch(/not applied\.\n +caisson chat/);
  });

  test("asks before it does what a rule is about, takes only an answer for one, and is held and steered by keys", async () => {
    const folder = await cli.folder({ "a.txt": "a\n" });
    const script: Script = {
      turns: [
        { calls: [bash("git commit -m x; echo tried")] },
        { calls: [bash("echo begun; sleep 60")], expect: { news: ["tried"] } },
        { say: "As you say.", expect: { news: ["use tabs"] } },
        { calls: [bash("echo again; sleep 60")] },
        { say: "Here again.", expect: { news: ["still there"] } },
      ],
    };
    await using terminal = await startChat(folder, { script, argv: "chat --permissions strict" });
    await terminal.type("commit it");
    await terminal.press("Enter");
    await terminal.seeOnScreen(/^\[y yes, a always, n no\]$/m);
    await terminal.type("x");
    await terminal.see(/May coder do this\?[\s\S]*May coder do this\?[\s\S]*answer with one of: y yes/);
    await terminal.type("y");
    await terminal.see(/answer allow/);
    await terminal.see(/begun/);
    for (const command of ["/sessions", "/new", "/cost"]) {
      await terminal.type(command);
      await terminal.press("Enter");
    }
    await terminal.see(/› \/sessions\nrun_[^›]*\n› \/new\n[^›]*\/new has to wait[^›]*\n› \/cost\n\$0/);
    await terminal.press("C-c");
    await terminal.seeOnScreen(/Held\. Type to steer it/);
    await terminal.type("use tabs");
    await terminal.press("Enter");
    await terminal.see(/As you say\.[\s\S]*done after 3 steps/);

    await terminal.type("go on");
    await terminal.press("Enter");
    await terminal.see(/^ +again$/m);
    await terminal.press("C-c");
    await terminal.seeOnScreen(/Held\. Type to steer it/);
    await terminal.press("C-c");
    await terminal.see(/cancelled after 4 steps/);
    await terminal.seeOnScreen(/^›$/m);
    await terminal.type("still there?");
    await terminal.press("Enter");
    await terminal.see(/Here again\./);
    await terminal.seeOnScreen(/^›\n\/help /m);
    await terminal.press("C-c");
    await terminal.seeOnScreen(/Ctrl-C again leaves/);
    await terminal.press("C-c");
    await terminal.see(/caisson chat --continue run_\w+[\s\S]*code=0/);
  });

  test("is a line editor: several lines, history, wide characters, any width; and obeys nothing from inside", async () => {
    const folder = await cli.folder({ "a.txt": "a\n" });
    const script: Script = {
      turns: [
        { say: "\u001b[2J\u001b]0;evil\u0007Heard.", expect: { news: ["one\ntwo\nthree 日本語 e\u0301!"] } },
        { say: "Heard again." },
      ],
    };
    await using terminal = await startChat(folder, { script, argv: "chat", cols: 60, rows: 20 });
    await terminal.type("one\\");
    await terminal.press("Enter");
    await terminal.paste("two\nthree 日本x");
    await terminal.press("BSpace");
    await terminal.type("語 e\u0301?");
    await terminal.press("BSpace");
    await terminal.type("!");
    await terminal.seeOnScreen(/^› one\n {2}two\n {2}three 日本語 e\u0301!$/m);
    expect((await terminal.cursor()).column).toBe(2 + "three ".length + 6 + 1 + 1 + 1);
    await terminal.resize(30, 20);
    await terminal.seeOnScreen(/^› one\n {2}two\n {2}three 日本語 e\u0301!$/m);
    expect((await terminal.screen()).match(/› one/g)).toHaveLength(1);
    await terminal.resize(60, 20);
    await terminal.press("Enter");
    const said = await terminal.see(/Heard\./);
    expect(said).toContain("caisson");
    await terminal.seeOnScreen(/^›\n\/help /m);
    await terminal.press("Up");
    await terminal.seeOnScreen(/^› one\n {2}two\n {2}three 日本語 e\u0301!\n\/help /m);
    await terminal.press("C-c");
    await terminal.seeOnScreen(/^›\n\/help /m);
    await terminal.type("/nothing");
    await terminal.press("Enter");
    await terminal.see(/there is no command \/nothing/);
    await terminal.press("C-d");
    const run = /chat --continue (run_\w+)[\s\S]*code=0/.exec(await terminal.see(/chat --continue run_\w+[\s\S]*code=0/))?.[1];
    expect((await stat(join(cli.home(), "chat-history"))).mode & 0o777).toBe(0o600);

    await terminal.type(`clear; ${cli.commandLine()} chat --continue ${run}\n`);
    await terminal.seeOnScreen(/› one[\s\S]*Heard\.[\s\S]*^›$/m);
    await terminal.press("Up", "Up");
    await terminal.seeOnScreen(/^› one\n {2}two/m);
    await terminal.press("Enter");
    await terminal.see(/Heard again\./);
    await terminal.seeOnScreen(/^›\n\/help /m);
    await terminal.press("C-d");
    await terminal.see(/[$#]$/m);
  });
});

test("caisson alone on a terminal is a chat, also before a model was chosen", async () => {
  await using terminal = await startChat(await cli.folder(), { argv: "" });
  await terminal.type("hello");
  await terminal.press("Enter");
  await terminal.see(/caisson: no model was chosen\nhint: /);
  await terminal.press("C-d");
  await terminal.see(/code=0/);
});

test("a chat without a terminal says what to use instead", async () => {
  const { code, stderr } = await cli.run(["chat"]);
  expect(code).toBe(125);
  expect(stderr).toMatch(/^caisson: a chat needs a terminal[^\n]*\nhint: .*caisson run/m);
});
