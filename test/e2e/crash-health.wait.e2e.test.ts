import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { type Going, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

interface Served {
  going: Going;
  client: Client;
}

async function serve(home: string, crashAt?: string): Promise<Served> {
  const env = crashAt === undefined ? {} : { CAISSON_CRASH_AT: crashAt };
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

/** Creates a home with shorter health check times. */
async function newHome(name: string): Promise<string> {
  const home = join(cli.base(), `home-${name}`);
  await mkdir(home, { recursive: true, mode: 0o700 });
  const health = { runningTtlMs: 6000, idleTtlMs: 6000, cooldownMs: 1000, graceMs: 500 };
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci", health }));
  return home;
}

describe("kill -9 of a station that is restarting a sandbox", () => {
  test.each([
    ["before the sandbox is touched", "health.restart"],
    ["after the restart, before it is recorded", "health.restarted"],
  ])("%s: the next station finishes the restart and keeps the files", { timeout: 120_000 }, async (_name, point) => {
    const home = await newHome(point.replace(".", "-"));
    const first = await serve(home, point);
    const { id } = await first.client.sandboxes.create({});
    const readContent = async (client: Client) => (await client.sandboxes.exec(id, { argv: ["cat", "/workspace/a"] })).stdout.text;
    await first.client.sandboxes.exec(id, { argv: ["sh", "-c", "echo kept > /workspace/a"] });
    process.kill(Number(await readFile(join(home, "sandboxes", id, "guest.pid"), "utf8")), "SIGSTOP");
    expect((await first.going.ended).signal).toBe("SIGKILL");
    const second = await serve(home);
    try {
      const incidents = async () => (await second.client.health.incidents()).map(({ outcome }) => outcome?.split(":")[0] ?? null);
      if (point === "health.restart") {
        // The interrupted restart counts as failed; this is a second one.
        await expect.poll(incidents, { timeout: 60_000, interval: 200 }).toEqual(["restarted", "failed"]);
      } else {
        // The sandbox already works; the station only has to notice.
        await expect.poll(() => readContent(second.client).catch(() => ""), { timeout: 60_000, interval: 200 }).toBe("kept\n");
        expect(await incidents()).toEqual([null]);
      }
      expect(await readContent(second.client)).toBe("kept\n");
      const find = async () => (await second.client.health.list()).subjects.find(({ subject }) => subject.id === id);
      await expect.poll(async () => (await find())?.level, { timeout: 60_000, interval: 200 }).toBe("ok");
      expect(await find()).toMatchObject({ escalated: false, restarts: point === "health.restart" ? 2 : 1 });
      await second.client.sandboxes.remove(id);
    } finally {
      await cli.run(["down"], { home });
      await second.going.ended;
    }
    expect(cli.sandboxes(home)).toEqual([]);
  });
});
