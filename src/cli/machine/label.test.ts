import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useTerminalCli } from "../testing.ts";

const cli = useTerminalCli();

test("the labels of a run are shown, given and taken away, also after its end, and it is found by them", async () => {
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

test("what is no label, is the station's own, or is about nothing that has some is refused", async () => {
  const refused = async (...args: string[]) => (await cli.onTerminal(["label", ...args])).text;
  expect(await refused("over", "team")).toMatch(/"team" is not a label[\s\S]*KEY=VALUE/);
  expect(await refused("over", "a=b", "--remove", "a")).toMatch(/both given and taken away/);
  expect(await refused("none-such", "a=b")).toMatch(/none-such/);
});
