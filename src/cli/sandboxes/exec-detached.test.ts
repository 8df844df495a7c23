import { expect, test } from "vitest";
import { useTerminalCli } from "../testing.ts";

const cli = useTerminalCli();
const exec = (...words: string[]) => cli.onTerminal(["exec", "--no-workspace", "--quiet", ...words]);

test("exec -d prints the sandbox and leaves the command in it; logs shows what it wrote and how it ended", async () => {
  const started = await exec("-d", "--", "sh", "-c", "echo out; exit 3");
  expect(started).toMatchObject({ code: 0, text: expect.stringMatching(/^sb_[a-z2-7]{12}\s*$/) });
  // What was shown is kept.
  for (let time = 0; time < 2; time++) {
    const shown = await cli.onTerminal(["logs", "-f", started.text.trim()]);
    expect(shown).toMatchObject({ code: 0, text: expect.stringMatching(/^out\r?\ncaisson: it ended with exit code 3 after /) });
  }
});

test("logs without -f does not wait for the end; of several commands the newest is shown, or the one that was named", async () => {
  const first: unknown = JSON.parse((await exec("-d", "--json", "--", "sh", "-c", "echo one; sleep 60")).text);
  expect(first).toEqual({ sandbox: expect.stringMatching(/^sb_/), ref: expect.any(String) });
  const { sandbox, ref } = first as { sandbox: string; ref: string };
  await cli.onTerminal(["exec", "-d", "--sandbox", sandbox, "--", "sh", "-c", "echo two; sleep 60"]);
  expect((await cli.onTerminal(["logs", sandbox])).text).toMatch(/^two\r?\ncaisson: it runs; -f follows it/);
  expect((await cli.onTerminal(["logs", sandbox, "--process", ref])).text).toMatch(/^one\r?\n/);
});

test.each(["-t", "-i"])("exec -d with %s is refused, and makes no sandbox", async (option) => {
  const refused = await exec("-d", option, "--", "true");
  expect(refused).toMatchObject({ code: 125, text: expect.stringContaining("nobody types into a command that is left alone") });
  expect((await cli.onTerminal(["sandbox", "ls"])).text).toMatch(/^No sandbox/);
});

test("a command that cannot be started leaves no sandbox behind", async () => {
  expect((await exec("-d", "--", "no-such-program")).code).toBe(127);
  expect((await cli.onTerminal(["sandbox", "ls"])).text).toMatch(/^No sandbox/);
});

test("logs of a sandbox in which nothing was left running says how to", async () => {
  const id = (await cli.onTerminal(["sandbox", "create", "--no-workspace"])).text.trim().split(/\s+/).at(-1) as string;
  const shown = await cli.onTerminal(["logs", id]);
  expect(shown.code).not.toBe(0);
  expect(shown.text).toMatch(new RegExp(`no command was left running in ${id}[\\s\\S]*caisson exec -d --sandbox`));
});
