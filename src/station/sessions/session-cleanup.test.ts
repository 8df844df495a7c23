import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { createTestStation, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";
import type { StartRunInput } from "../../contract/run/run-verbs.ts";
import { sweepUnfinished } from "./create-session.ts";
import { LEAVING_PREFIX } from "./session-folders.ts";

const works: Script = { turns: [{ calls: [write("x", "x")] }, { say: "Done." }] };
const fails: Script = { turns: [{ fail: { code: "invalid", times: 9 } }] };
const sessionsOf = ({ folder }: TestStation) => {
  const root = join(dirname(folder), "sessions");
  return existsSync(root) ? readdirSync(root) : [];
};

/** Runs a task to its end, and returns the entries of the sessions folder then. */
async function left(station: TestStation, request: Partial<StartRunInput> = {}): Promise<string[]> {
  const { run } = await station.verbs.runs.start({
    task: "do it",
    ...(request.from === undefined && { source: { kind: "folder", path: station.folder } }),
    ...request,
  } as StartRunInput);
  await station.verbs.runs.wait(run).catch(() => undefined);
  return sessionsOf(station).map((name) => name.replace(run, "RUN"));
}

describe("a session goes with its run", () => {
  test.each([
    ["always", works, []],
    ["always", fails, []],
    ["on_success", works, []],
    ["on_success", fails, [`${LEAVING_PREFIX}RUN`, "RUN"]],
    ["never", works, ["RUN"]],
  ] as const)("%s, as asked", async (cleanup, script, expected) => {
    await using station = await createTestStation({ script });
    expect(await left(station, { cleanup })).toEqual(expected);
  });

  test("unless the request says otherwise than the agent's file", async () => {
    await using station = await createTestStation({ script: works, agents: { coder: { workspace: { cleanup: "always" } } } });
    expect(await left(station)).toEqual([]);
    expect(await left(station, { cleanup: "never" })).toEqual(["RUN"]);
  });

  test("and its history says why, with the files that were not applied", async () => {
    await using station = await createTestStation({ script: works });
    await left(station, { cleanup: "always", session: { id: "fix" } });
    const history = await station.sessions.history("fix");
    expect(history.map(({ type }) => type)).toEqual(["session.created", "session.run_started", "session.run_ended", "session.removed"]);
    expect(history.at(-1)?.data).toMatchObject({ why: "cleanup" });
  });
});

describe("a named session", () => {
  test("goes with its last open run, if a run asked for it", async () => {
    await using station = await createTestStation({ script: works });
    expect(await left(station, { session: { id: "fix" } })).toEqual(["fix"]);
    expect(await left(station, { session: { id: "fix" }, source: undefined, cleanup: "on_success" } as never)).toEqual([]);
  });

  test("stays while another run in it is open", async () => {
    await using station = await createTestStation({ script: works });
    const later = { task: "later", session: { id: "fix" }, source: { kind: "folder", path: station.folder }, detached: true } as const;
    const { run } = await station.verbs.runs.start(later);
    const { run: first } = await station.verbs.runs.start({ task: "now", session: { id: "fix" }, cleanup: "always" });
    await station.verbs.runs.wait(first);
    expect(sessionsOf(station)).toContain("fix");
    await station.verbs.runs.stop(run, { by: "me" });
    expect(sessionsOf(station)).toEqual([]);
  });

  test("stays if only the agent's file for single runs says that it goes", async () => {
    await using station = await createTestStation({ script: works, agents: { coder: { workspace: { cleanup: "always" } } } });
    expect(await left(station, { session: { id: "fix" } })).toEqual(["fix"]);
  });
});

describe("the next start", () => {
  test("removes a session whose process died after the end of its run", async () => {
    let died = false;
    const crashpoint = (name: string) => {
      if (name !== "session.cleanup:before" || died) return;
      died = true;
      throw new Error("the process dies here");
    };
    await using station = await createTestStation({ script: works, crashpoint });
    expect(await left(station, { cleanup: "always" })).toEqual([`${LEAVING_PREFIX}RUN`, "RUN"]);
    expect(died).toBe(true);
    await sweep(station);
    expect(sessionsOf(station)).toEqual([]);
  });

  test.each(["session.removed:before", "session.moved:after"])("completes a removal that was interrupted at %s", async (point) => {
    const crashpoint = (name: string) => {
      if (name === point) throw new Error("the process dies here");
    };
    await using station = await createTestStation({ script: works, crashpoint });
    expect(await left(station, { cleanup: "always", session: { id: "fix" } })).not.toEqual([]);
    await sweep(station);
    expect(sessionsOf(station)).toEqual([]);
    expect((await station.sessions.history("fix")).at(-1)?.type).toBe("session.removed");
  });

  test("looks at a session that stays only once, until it is used again", async () => {
    await using station = await createTestStation({ script: fails });
    await left(station, { cleanup: "on_success", session: { id: "failed" } });
    let looks = 0;
    const heads: typeof station.log.heads = (filter) => {
      looks += 1;
      return station.log.heads(filter);
    };
    const log = { ...station.log, heads };
    for (let start = 0; start < 3; start += 1) await sweep({ ...station, log });
    expect(looks).toBe(2);
    await station.sessions.update("failed", { lastUsedAt: new Date(Date.now() + 1).toISOString() });
    await sweep({ ...station, log });
    expect(looks).toBe(4);
  });

  test("leaves sessions alone whose run is open or failed", async () => {
    await using station = await createTestStation({ script: fails });
    const { run } = await station.verbs.runs.start({ task: "later", cleanup: "always", detached: true });
    await left(station, { cleanup: "on_success", session: { id: "failed" } });
    await sweep(station);
    expect(sessionsOf(station).sort()).toEqual([`${LEAVING_PREFIX}${run}`, `${LEAVING_PREFIX}failed`, "failed", run].sort());
  });
});

async function sweep(station: TestStation): Promise<void> {
  const identity = { pid: 9, host: "here", startTicks: 1, bootId: "boot" };
  const { log, sessions, runtime } = station;
  await sweepUnfinished({ log, sessions, identity, alive: () => true, stateDir: dirname(station.folder), runtimes: async () => [runtime] });
}
