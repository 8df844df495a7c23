import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

/** Damage that a disk, a user or another program can do to a record. */
const damages: Readonly<Record<string, (record: string) => Promise<void>>> = {
  "is not JSON": (record) => writeFile(record, '{"id":'),
  "cannot be read": async (record) => {
    await rm(record);
    await mkdir(record);
  },
};

describe.each(Object.entries(damages))("a session whose record %s", (name, damage) => {
  test("is reported by `session ls` and `ps`, which still list the others", async () => {
    const home = join(cli.base(), name.replaceAll(" ", "-"));
    const model = await cli.script({ turns: [{ say: "Done." }] });
    const [cwd, elsewhere] = [await cli.folder(), await cli.folder()];
    const start = async (folder: string) => (await cli.run(["run", "x", "--repo", folder, "--model", model, "--json"], { home })).events;
    const [whole, damaged] = [await start(cwd), await start(elsewhere)].map(([created]) =>
      created?.type === "run.created" ? created.data.run : "",
    );
    await damage(join(home, "sessions", damaged ?? "", "session.json"));
    const listsTheRest = async () => {
      for (const command of [["session", "ls"], ["ps"], ["ps", "--all"], ["session", "ls", "--json"], ["ps", "--json"]]) {
        const { code, text, stderr } = await cli.run(command, { home, cwd });
        expect([code, command, stderr]).toEqual([0, command, expect.stringContaining(`caisson: session ${damaged} cannot be listed: `)]);
        expect(text).toContain(whole);
      }
    };
    await listsTheRest();
    const station = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
    await station.output(/"pid"/);
    await listsTheRest();
    station.child.kill("SIGTERM");
    await station.ended;
  });
});
