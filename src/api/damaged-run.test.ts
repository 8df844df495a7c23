import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";

const { server, token, endedRun, base } = useServer();

test("reads the intact events of a damaged run log, then reports the damage", async () => {
  const run = await endedRun();
  const database = new DatabaseSync(join(base(), "state", "log.db"));
  database.prepare("UPDATE events SET data = '{\"oops\":1}' WHERE stream = ? AND seq = 4").run(`run/${run}`);
  database.close();
  const { runs } = connect({ url: server().status.url, token: await token("read") });
  const read: number[] = [];
  const reading = async () => {
    for await (const { seq } of runs.events(run)) read.push(seq);
  };
  await expect(reading()).rejects.toMatchObject({ hint: expect.stringContaining("caisson logs --check") });
  expect(read).toEqual([1, 2, 3]);
});
