import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { CaissonError } from "../../src/contract/error/error.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { type Going, useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const lines = (...all: string[]) => `${all.join("\n")}\n`;
/** A scripted model that runs these commands and finishes. */
const commands = (...all: string[]) => ({
  turns: [...all.map((command) => ({ calls: [{ tool: "bash", arguments: { command } }] })), { say: "Done." }],
});

async function ok(argv: readonly string[], cwd: string): Promise<string> {
  const { code, text, stderr } = await cli.run(argv, { cwd });
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return text;
}

interface Station {
  going: Going;
  client: Client;
}

/**
 * Starts a station on the state folder of these tests. With a point, the station is killed with -9 when it gets there.
 */
async function serve(point?: string): Promise<Station> {
  const env = point === undefined ? {} : { CAISSON_CRASH_AT: point };
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { env });
  onTestFinished(() => void going.child.kill("SIGKILL"));
  // A station that resumes a merge may die before it listens.
  await Promise.race([going.output(/"pid"/).catch(() => undefined), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(cli.home(), "station", "socket")) }) };
}

async function died({ going }: Station, point: string): Promise<void> {
  const { signal, stderr } = await going.ended;
  expect([signal, stderr], `it does not die at ${point}`).toEqual(["SIGKILL", expect.any(String)]);
}

async function end({ going }: Station): Promise<void> {
  await ok(["down"], cli.work());
  await going.ended;
}

/** Returns the types of a merge's events. */
async function typesOf(merge: string): Promise<string[]> {
  await using log = createSqliteLog({ path: join(cli.home(), "log.db") });
  return (await log.read(`merge/${merge}`)).map(({ type }) => type).filter((type) => type !== "driven.waiting");
}

async function mergesInLog(): Promise<string[]> {
  await using log = createSqliteLog({ path: join(cli.home(), "log.db") });
  return (await log.streams({ prefix: "merge/" })).map(({ stream }) => stream.slice("merge/".length));
}

// Only without a station, since the test starts its own.
test.runIf(stationMode === "none")(
  "a merge whose station is killed with -9 continues in the next, without repeats",
  { timeout: 1_200_000 },
  async () => {
    const folder = await cli.folder({ "a.txt": lines("1", "2", "3", "4", "5", "6", "7", "8", "9") });
    const changes = {
      one: "sed -i 's/^9$/nine/' a.txt; printf 'a\\000b' > bin",
      two: "sed -i 's/^5$/two/' a.txt",
      three: "sed -i 's/^5$/three/' a.txt",
    };
    for (const [session, command] of Object.entries(changes)) {
      const model = await cli.script(commands(command));
      await ok(["run", "do it", "--model", model, "--runtime", "oci", "--session", session], folder);
    }
    const model = await cli.script(
      commands("awk '/^<<<<<<< /{skip=1} !skip{print} /^>>>>>>> /{skip=0; print \"both\"}' a.txt > /tmp/a && cat /tmp/a > a.txt"),
    );
    const request = (name: string) => ({ sessions: Object.keys(changes), conflicts: "agent" as const, model, name });

    const first = await serve();
    const whole = await first.client.merges.start(request("whole"));
    expect(await first.client.merges.wait(whole.id, { signal: AbortSignal.timeout(120_000) })).toMatchObject({ finish: "completed" });
    await end(first);
    const expected = await ok(["diff", "whole"], folder);
    expect(expected).toContain("+both");
    const types = await typesOf(whole.id);
    const known = new Set([whole.id]);

    /** Starts a merge and kills one station after the other at these points. The last station only has to run. */
    const crashed = async (name: string, points: readonly string[]) => {
      for (const [index, point] of points.entries()) {
        const station = await serve(point);
        if (index === 0)
          await station.client.merges.start(request(name)).catch((error: unknown) => {
            // The station may die before it answers, but must not refuse.
            if (error instanceof CaissonError && !["unavailable", "lost"].includes(error.code)) throw error;
          });
        await died(station, point);
      }
      const [id = "", ...more] = (await mergesInLog()).filter((each) => !known.has(each));
      expect(more).toEqual([]);
      known.add(id);
      const last = await serve();
      expect(await last.client.merges.wait(id, { signal: AbortSignal.timeout(120_000) })).toMatchObject({ finish: "completed" });
      await end(last);
      expect(await ok(["diff", name], folder), name).toBe(expected);
      // An interrupted step is found by its intent, so no step has two events.
      expect(await typesOf(id), name).toEqual(types);
    };
    const moments = {
      untold: ["driven.created:after"],
      planned: ["merge.planned:before"],
      merging: ["merge.step_ended:before"],
      resolving: ["tool.effect"],
      published: ["merge.published:before"],
      "all-the-way": [
        "merge.plan_started:after",
        "merge.step_started:after",
        "merge.step_ended:before",
        "merge.offered:before",
        "tool.effect",
        "merge.checked:before",
        "merge.publish_started:after",
        "merge.cleaned_up:before",
        "driven.ended:before",
      ],
    };
    for (const [name, points] of Object.entries(moments)) await crashed(name, points);

    const merges = JSON.parse(await ok(["merge", "ls", "--json"], folder)) as { finish: string }[];
    expect(merges.map(({ finish }) => finish)).toEqual([...known].map(() => "completed"));
    // One agent per conflict, and only the requested sessions.
    const runs = JSON.parse(await ok(["ps", "--all", "--json"], folder)) as { agent: string; status: string }[];
    expect(runs.filter(({ agent }) => agent === "merger").map(({ status }) => status)).toEqual([...known].map(() => "done"));
    const sessions = JSON.parse(await ok(["session", "ls", "--json"], folder)) as { id: string }[];
    expect(sessions.map(({ id }) => id).sort()).toEqual([...Object.keys(changes), ...Object.keys(moments), "whole"].sort());
    expect(cli.sandboxes()).toEqual([]);
  },
);
