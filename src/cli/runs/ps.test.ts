import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import { displayWidth } from "../terminal/plain-text.ts";
import { elsewhereText, everyPage, leftOutText } from "./ps.ts";

const cli = useTerminalCli();

test("cuts rows to the terminal's width; JSON has the whole folder and task", async () => {
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  const folder = join(cli.base(), "work", "customers", "a-very-long-name-of-somebody", "repositories", "shop");
  await mkdir(folder, { recursive: true });
  const task = "make every single price of the catalogue be shown with two digits after the point";
  const argv = [task, "--name", "every-price-has-exactly-two-digits", "--repo", folder, "--model", `scripted:${script}`];
  expect(await cli.onTerminal(["run", ...argv])).toMatchObject({ code: 0 });
  expect(await cli.onTerminal(["run", "short", "--model", `scripted:${script}`])).toMatchObject({ code: 0 });
  const { text } = await cli.onTerminal(["ps", "--all"]);
  const rows = text.trimEnd().split("\n");
  expect(rows).toHaveLength(3);
  for (const row of rows) expect(displayWidth(row), row).toBeLessThanOrEqual(100);
  expect(text).toMatch(/ {2}every-price-has-exactly… {2}.* {2}…\/shop +make .*…$/m);
  expect(text).toMatch(/ {2}~\/work +short$/m);
  expect(JSON.parse((await cli.onTerminal(["ps", "--all", "--json"])).text)).toContainEqual(expect.objectContaining({ folder, task }));
});

test("shows a name whole if it fits, and the folder only if rows may differ in it", async () => {
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  const task = "Migrate the prices of every shop to the new table";
  expect(await cli.onTerminal(["run", task, "--name", "fix-discounts", "--model", `scripted:${script}`])).toMatchObject({ code: 0 });
  const { text } = await cli.onTerminal(["ps"]);
  expect(text).toMatch(/^RUN +NAME +AGENT .*UNAPPLIED +TASK$/m);
  expect(text).toMatch(/ {2}fix-discounts {2}.* {2}Migrate the prices of/);
});

test("shows a capped count as that number or more", () => {
  const count = (total: number, isMinimum = false) => ({ total, isMinimum });
  expect(elsewhereText({ all: count(3), here: count(2) })).toBe("1 run elsewhere: caisson ps --all");
  expect(elsewhereText({ all: count(1000, true), here: count(2) })).toBe("998 or more runs elsewhere: caisson ps --all");
  expect(elsewhereText({ all: count(1001, true), here: count(1000) })).toBe("1 or more runs elsewhere: caisson ps --all");
  expect(elsewhereText({ all: count(1000, true), here: count(1000, true) })).toBe("there may be more elsewhere: caisson ps --all");
  expect(elsewhereText({ all: count(5), here: count(5) })).toBe(null);
  const list = (total: number, totalIsMinimum = false) => ({ runs: [], total, totalIsMinimum });
  expect(leftOutText({ open: list(2), ended: list(7, true) })).toMatch(/: 2 that have not ended, 7 or more that have ended$/);
  expect(leftOutText({ open: list(0) })).toBe(null);
  // Every counted run is shown, and there are more.
  expect(leftOutText({ open: list(0), ended: list(0, true) })).toMatch(/: some that have ended$/);
});

test("`ps --all --json` reads all pages and lists each run once", async () => {
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  for (const task of ["one", "two", "three"]) await cli.onTerminal(["run", task, "--model", `scripted:${script}`]);
  const all = JSON.parse((await cli.onTerminal(["ps", "--all", "--json"])).text) as { run: string }[];
  const ids = all.map(({ run }) => run);
  const cursors: (string | undefined)[] = [];
  const list = async ({ cursor }: { cursor?: string | undefined } = {}) => {
    cursors.push(cursor);
    const at = Number(cursor ?? 0);
    // A run that changes in the meantime appears on two pages.
    const page = [...ids.slice(at, at + 2), ...ids.slice(0, 1)].map((run) => ({ run }));
    return { runs: page, total: 2, totalIsMinimum: true, next: at + 2 < ids.length ? String(at + 2) : null } as never;
  };
  const found = await everyPage({ list }, { state: "ended", limit: 2 });
  expect([found.runs.map(({ run }) => run).sort(), found.totalIsMinimum, found.total]).toEqual([[...ids].sort(), false, ids.length]);
  expect(cursors.length).toBe(Math.ceil(ids.length / 2));
});
