import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { startTerminal, type Terminal } from "../support/tmux.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });

/** Starts a run with this script in a terminal. */
async function runInTerminal(script: Script, cols = 90): Promise<Terminal> {
  const model = await cli.script(script);
  const terminal = await startTerminal({ cwd: cli.work(), env: cli.environment({}), cols });
  await terminal.type(`${cli.commandLine()} run 'the task' --no-workspace --permissions strict --model ${model}; echo code=$?\n`);
  return terminal;
}

describe("a run in a terminal", () => {
  test("is held by Ctrl-C, and continues with the line that is typed", async () => {
    await using terminal = await runInTerminal({
      turns: [{ calls: [bash("echo begun; sleep 60")] }, { say: "As you say.", expect: { news: ["Interrupted", "use tabs"] } }],
    });
    await terminal.see(/begun/);
    await terminal.press("C-c");
    await terminal.see(/Ctrl-C again to stop/);
    await terminal.type("use tabs\n");
    // The question stays on the screen: nothing overwrites it later.
    await terminal.see(/held\nInterrupted\. Type a message[\s\S]*use tabs[\s\S]*As you say\.[\s\S]*done after 2 steps[\s\S]*code=0/);
  });

  test("is stopped by a second Ctrl-C", async () => {
    await using terminal = await runInTerminal({ turns: [{ calls: [bash("echo begun; sleep 60")] }] });
    await terminal.see(/begun/);
    await terminal.press("C-c");
    await terminal.see(/Ctrl-C again to stop/);
    await terminal.press("C-c");
    await terminal.see(/cancelled after 1 step[\s\S]*code=130/);
  });

  test("asks its questions there, and rejects invalid answers", async () => {
    await using terminal = await runInTerminal({
      turns: [{ calls: [bash("git commit -m x || echo tried")] }, { say: "Good.", expect: { news: ["tried"] } }],
    });
    await terminal.see(/May coder do this\?[\s\S]*y yes, a always, n no/);
    await terminal.type("yep\n");
    await terminal.see(/"yep" is not an answer, and was not passed on[\s\S]*y yes, a always, n no/);
    await terminal.type("y\n");
    await terminal.see(/Good\.[\s\S]*code=0/);
    const sent = await cli.events(/run_[a-z2-7]{12}/.exec((await terminal.see(/code=0/)).replaceAll("\n", ""))?.[0] ?? "");
    expect(sent.filter(({ type }) => type === "message.received")).toEqual([]);
  });

  test("streams words and output without control sequences, even in a narrow window", async () => {
    const words = "Slowly I say a few words that do not fit into one row of this terminal";
    const script: Script = {
      turns: [
        { say: words, pauseMs: 100, calls: [bash("printf '\\033[2J\\033[31mred\\007\\033]0;evil\\007\\n'; seq 1 20; sleep 1; echo over")] },
        { say: "Done." },
      ],
    };
    await using terminal = await runInTerminal(script, 44);
    expect(await terminal.see(/Slowly I say a\s+few/)).not.toMatch(/terminal\n/);
    await terminal.see(/ 19\n +20\n/);
    await terminal.resize(34, 30);
    const text = await terminal.see(/done after 2 steps[\s\S]*code=0/);
    // The rows that were redrawn while it ran are removed.
    expect(text).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/);
    expect(text).toMatch(/✓ bash/);
    expect(text).toMatch(/… 1\d lines\n[\s\S]*over/);
    expect(text.match(/Slowly/g)).toHaveLength(1);
  });
});
