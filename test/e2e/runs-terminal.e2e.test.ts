import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { type Terminal, withTerminal } from "../support/terminal.ts";
import { until } from "./caisson-process.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });

async function inTerminal(script: Script, use: (terminal: Terminal, see: (pattern: RegExp) => Promise<void>) => Promise<void>, cols = 90) {
  const model = await cli.script(script);
  await withTerminal({ cwd: cli.work(), env: cli.environment({}), cols }, async (terminal) => {
    const see = (pattern: RegExp) =>
      until(`${pattern} on the screen`, () => pattern.test(terminal.screen()), 30_000).catch((error: unknown) => {
        throw new Error(`${error instanceof Error ? error.message : error}\n${terminal.screen()}`);
      });
    terminal.type(`${cli.commandLine()} run 'the task' --no-workspace --permissions strict --model ${model}; echo code=$?\n`);
    await use(terminal, see);
  });
}

describe("a run in a terminal", { timeout: 90_000 }, () => {
  test("Ctrl-C holds it; a typed line steers it, and it goes on", async () => {
    await inTerminal(
      { turns: [{ calls: [bash("echo begun; sleep 60")] }, { say: "As you say.", expect: { news: ["Interrupted", "use tabs"] } }] },
      async ({ type }, see) => {
        await see(/begun/);
        type("\x03");
        await see(/Ctrl-C again to stop/);
        type("use tabs\n");
        await see(/As you say\.[\s\S]*done after 2 steps[\s\S]*code=0/);
      },
    );
  });

  test("Ctrl-C twice stops it", async () => {
    await inTerminal({ turns: [{ calls: [bash("echo begun; sleep 60")] }] }, async ({ type }, see) => {
      await see(/begun/);
      type("\x03");
      await see(/Ctrl-C again to stop/);
      type("\x03");
      await see(/cancelled after 1 step[\s\S]*code=130/);
    });
  });

  test("a question is answered where it is asked", async () => {
    await inTerminal(
      { turns: [{ calls: [bash("git commit -m x || echo tried")] }, { say: "Good.", expect: { news: ["tried"] } }] },
      async ({ type }, see) => {
        await see(/May coder do this\?[\s\S]*y yes, a always, n no/);
        type("y\n");
        await see(/Good\.[\s\S]*code=0/);
      },
    );
  });

  test("shows words and output as they come, obeys nothing from inside, and leaves no garbage, however narrow", async () => {
    const words = "Slowly I say a few words that do not fit into one row of this terminal";
    const script: Script = {
      turns: [
        { say: words, pauseMs: 100, calls: [bash("printf '\\033[2J\\033[31mred\\007\\033]0;evil\\007\\n'; seq 1 20; sleep 1; echo over")] },
        { say: "Done." },
      ],
    };
    await inTerminal(
      script,
      async ({ screen, resize }, see) => {
        await see(/Slowly I say a\s+few/);
        expect(screen()).not.toMatch(/terminal\n/);
        await see(/ 19\n +20\n/);
        resize(34, 30);
        await see(/done after 2 steps/);
        await see(/code=0/);
        const text = screen();
        // The rows that were drawn again and again are gone.
        expect(text).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/);
        expect(text).toMatch(/✓ bash/);
        expect(text).toMatch(/… 1\d lines\n[\s\S]*over/);
        expect(text.match(/Slowly/g)).toHaveLength(1);
      },
      44,
    );
  });
});
