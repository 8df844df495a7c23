import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

const cli = useTerminalCli();
const write = (path: string) => ({ tool: "write", arguments: { path, content: "x\n" } });

async function script(value: Script): Promise<string> {
  const path = join(cli.base(), "script.json");
  await writeFile(path, JSON.stringify(value));
  return `scripted:${path}`;
}

/** Runs a command and strips control sequences from its output. */
const caisson = async (...argv: string[]) => {
  const { code, text } = await cli.onTerminal(argv);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is taken out.
  return { code, text: text.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, "") };
};
const idIn = (text: string): string => /run_[a-z2-7]{12}/.exec(text)?.[0] ?? "";

test("`run --continue` continues the newest run of this folder, or a named one", async () => {
  const turns = [
    { calls: [write("a.txt")] },
    { say: "First." },
    { calls: [write("b.txt")], expect: { contains: ["the task", "First."], news: ["and a second"] } },
    { say: "Second." },
    { say: "Third.", expect: { contains: ["the task", "and a second", "Second."], news: ["the very last"] } },
  ];
  const first = await caisson("run", "the task", "--model", await script({ turns }));
  expect(first).toMatchObject({ code: 0, text: expect.stringContaining("First.") });
  const second = await caisson("run", "--continue", "and a second");
  expect(second, second.text).toMatchObject({ code: 0, text: expect.stringContaining("Second.") });
  expect(second.text).toMatch(/added\s+a\.txt[\s\S]*added\s+b\.txt/);
  // The option's value is a run, even if the text comes first.
  const third = await caisson("run", "the very last", "--continue", idIn(first.text));
  expect(third, third.text).toMatchObject({ code: 0, text: expect.stringContaining("Third.") });
  expect(JSON.parse((await caisson("ps", "--json")).text)).toMatchObject([{ run: idIn(first.text), status: "done", steps: 5 }]);
});

test("`run --continue` and `resume` reject runs that cannot continue, with a hint", async () => {
  expect(await caisson("run", "--continue", "more")).toMatchObject({
    code: 125,
    text: expect.stringMatching(/there are no runs yet[\s\S]*hint:/),
  });
  const first = await caisson("run", "the task", "--model", await script({ turns: [{ say: "Done." }] }));
  expect((await caisson("run", "--continue")).text).toMatch(/there is no message/);
  expect((await caisson("run", "--continue", " ")).text).toMatch(/there is no message[\s\S]*caisson run --continue "/);
  expect((await caisson("run", "--continue", "more", "--network", "open")).text).toMatch(/--network cannot be changed with --continue/);
  expect((await caisson("resume")).text).toMatch(/is done, and there is nothing to resume[\s\S]*caisson send run_/);
  expect(await caisson("discard", idIn(first.text), "--yes")).toMatchObject({ code: 0 });
  expect((await caisson("run", "--continue", idIn(first.text), "more")).text).toMatch(/was removed, and its files with it/);
});

test("`resume` continues a run that used up its steps if it gets more", async () => {
  const turns = [{ calls: [write("a.txt")] }, { calls: [write("b.txt")] }, { say: "Done." }];
  const options = ["--model", await script({ turns }), "--max-steps", "1", "--on-budget", "stop"];
  expect(await caisson("run", "the task", ...options)).toMatchObject({ code: 1, text: expect.stringContaining("max_steps") });
  expect((await caisson("resume")).text).toMatch(/took 1 steps; the limit is 1\nhint: Raise it with --max-steps/);
  expect((await caisson("resume", "--max-steps", "x")).text).toMatch(/--max-steps/);
  // What a background process does, because the user may have stopped the run before it starts.
  expect((await caisson("resume", "--max-steps", "5", "--unless-ended")).text).toMatch(/has ended \(max_steps\)/);
  const resumed = await caisson("resume", "--max-steps", "5");
  expect(resumed, resumed.text).toMatchObject({ code: 0, text: expect.stringContaining("done after 2 steps (3 in all)") });
});
