import { expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";

const cli = useTerminalCli();
const exec = (...words: string[]) => cli.onTerminal(["exec", "--no-workspace", "--quiet", ...words]);

test("exec -d leaves a command running, and logs shows its output and end", async () => {
  const started = await exec("-d", "--", "sh", "-c", "echo out; exit 3");
  expect(started).toMatchObject({ code: 0, text: expect.stringMatching(/^sb_[a-z2-7]{12}\s*$/) });
  // Reading the output does not consume it.
  for (let time = 0; time < 2; time++) {
    const logs = await cli.onTerminal(["logs", "-f", started.text.trim()]);
    expect(logs).toMatchObject({ code: 0, text: expect.stringMatching(/^out\r?\ncaisson: it ended with exit code 3 after /) });
  }
});

test("logs without -f returns at once, and shows the newest command or the one given", async () => {
  const first: unknown = JSON.parse((await exec("-d", "--json", "--", "sh", "-c", "echo one; sleep 60")).text);
  expect(first).toEqual({ sandbox: expect.stringMatching(/^sb_/), ref: expect.any(String) });
  const { sandbox, ref } = first as { sandbox: string; ref: string };
  await cli.onTerminal(["exec", "-d", "--sandbox", sandbox, "--", "sh", "-c", "echo two; sleep 60"]);
  expect((await cli.onTerminal(["logs", sandbox])).text).toMatch(/^two\r?\ncaisson: it is still running; use -f to follow it/);
  expect((await cli.onTerminal(["logs", sandbox, "--process", ref])).text).toMatch(/^one\r?\n/);
});

test.each(["-t", "-i"])("exec -d rejects %s and creates no sandbox", async (option) => {
  const refused = await exec("-d", option, "--", "true");
  expect(refused).toMatchObject({ code: 125, text: expect.stringContaining("a detached command has no terminal") });
  expect((await cli.onTerminal(["sandbox", "ls"])).text).toMatch(/^No sandbox/);
});

test("a command that cannot be started leaves no sandbox behind", async () => {
  expect((await exec("-d", "--", "no-such-program")).code).toBe(127);
  expect((await cli.onTerminal(["sandbox", "ls"])).text).toMatch(/^No sandbox/);
});

test("logs of a sandbox without detached commands explains how to start one", async () => {
  const id = (await cli.onTerminal(["sandbox", "create", "--no-workspace"])).text.trim().split(/\s+/).at(-1) as string;
  const logs = await cli.onTerminal(["logs", id]);
  expect(logs.code).not.toBe(0);
  expect(logs.text).toMatch(new RegExp(`no detached command was started in ${id}[\\s\\S]*caisson exec -d --sandbox`));
});
