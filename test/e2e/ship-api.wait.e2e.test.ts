import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { ShipStatus } from "../../src/contract/ship/ship-verbs.ts";
import { startForgeServer } from "../support/forge-server.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const TOKEN = "canary-token-Kf93nBvX2qTz8mWs";
const cli = useRunsCli();
const WATCH_SECONDS = 30;

/** Polls as a plain HTTP client does, until the ship has this status. Fails if the ship stops. */
async function reached(client: Client, id: string, wanted: ShipStatus) {
  let ship = await client.ships.get(id);
  while (ship.status !== wanted) {
    expect(ship.status, JSON.stringify(ship.error)).not.toMatch(/blocked|cancelled/);
    ship = await client.ships.watch(id, { afterSeq: ship.seq, seconds: WATCH_SECONDS });
  }
  return ship;
}

describe.each(["github", "gitea"] as const)("a run's change, over HTTP alone", (kind) => {
  test(`ships to a forge with the API of ${kind}, and merges on request`, { timeout: 600_000 }, async () => {
    const files = { "add.sh": "echo $(($1 - $2))\n", "test.sh": '[ "$(sh add.sh 2 3)" = 5 ]\n' };
    await using forge = await startForgeServer({ kind, folder: await cli.folder(), token: TOKEN, files });
    const home = join(cli.base(), `home-${kind}`);
    await mkdir(home, { recursive: true, mode: 0o700 });
    await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
    const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
    try {
      await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
      const client = connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) });
      await client.secrets.set("FORGE", { value: TOKEN, hosts: ["127.0.0.1"], ports: [Number(new URL(forge.url).port)] });
      const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
      const model = await cli.script({
        about: "a scripted model that mends add.sh",
        turns: [bash("echo 'echo $(($1 + $2))' > add.sh"), bash("sh test.sh"), { say: "Done." }],
      });
      const source = { kind: "git", url: forge.remote } as const;
      const { run } = await client.runs.start({ task: "Mend the addition", model, source });
      expect(await client.runs.wait(run)).toMatchObject({ finish: "done" });
      const options = { of: run, forge: kind, token: "FORGE", allowPrivate: true, kind: "fix", ticket: "#12" } as const;
      const { id } = await client.ships.start(options);
      const opened = await reached(client, id, "open");
      expect(opened).toMatchObject({ branch: "fix/12-mend-the-addition", tests: { kind: "ran", command: "sh test.sh" } });
      expect(opened.request?.url).toBe(`${forge.url}/team/project/${kind === "github" ? "pull" : "pulls"}/1`);
      expect((await client.ships.start(options)).id).toBe(id);
      await client.ships.merge(id);
      const merged = await reached(client, id, "merged");
      expect(merged.merged).toBe(forge.repository.branch("main"));
      expect(forge.repository.branches()).toEqual(["main"]);
      expect(forge.repository.file("main", "add.sh")).toBe("echo $(($1 + $2))");
      expect(forge.pulls.all()).toMatchObject([{ title: "Mend the addition", mergedAt: expect.any(String) }]);
      expect(JSON.stringify(merged)).not.toContain(TOKEN);
      await expect(client.ships.merge(id)).rejects.toMatchObject({ code: "conflict" });
    } finally {
      await cli.run(["down"], { home });
      await going.ended;
    }
  });
});
