import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";

const cli = useTerminalCli();

test("labels of a run can be listed, changed and searched for, even after its end", async () => {
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  const started = await cli.onTerminal(["run", "go", "--name", "over", "--label", "team=walls", "--model", `scripted:${script}`]);
  expect(started).toMatchObject({ code: 0 });
  const lines = async (...args: string[]) => (await cli.onTerminal(["label", "over", ...args])).text.trim().split(/\r?\n/);
  expect(await lines()).toEqual(["team=walls"]);
  expect(await lines("team=floors", "ticket=a=b")).toEqual(["team=floors", "ticket=a=b"]);
  expect(await lines("--remove", "ticket")).toEqual(["team=floors"]);
  const found = async (label: string) => JSON.parse((await cli.onTerminal(["ps", "--all", "--label", label, "--json"])).text).length;
  expect([await found("team=floors"), await found("team=walls")]).toEqual([1, 0]);
});

test("rejects malformed and contradictory labels, and unknown names", async () => {
  const refused = async (...args: string[]) => (await cli.onTerminal(["label", ...args])).text;
  expect(await refused("over", "team")).toMatch(/"team" is not a label[\s\S]*KEY=VALUE/);
  expect(await refused("over", "a=b", "--remove", "a")).toMatch(/both set and removed/);
  expect(await refused("none-such", "a=b")).toMatch(/none-such/);
});
