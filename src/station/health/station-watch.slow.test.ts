import { describe, expect, test } from "vitest";
import { useWatch } from "../../../test/support/watched-station.ts";
import type { HealthEvent } from "../../contract/health/health-event.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { sandboxStream } from "../vocabulary/station-names.ts";

const { seconds, time, parts, local, runtime, watch, again } = useWatch();

async function createKeptSandbox(): Promise<string> {
  const sandbox = await (await parts().runtimes.get("fake")).create(parseSandboxConfig({ keep: true }));
  await sandbox.writeFile("/workspace/a.txt", Buffer.from("kept\n"));
  await sandbox.release();
  // Wait until the watch has opened the sandbox.
  while (runtime().connections(sandbox.id) === 0) await seconds(1);
  await seconds(2);
  return sandbox.id;
}

async function eventsOf(id: string): Promise<HealthEvent[]> {
  return (await local().core.log.read(sandboxStream(id))) as unknown as HealthEvent[];
}
const healthOf = async (id: string) =>
  (await eventsOf(id)).map(({ type, data }) => ("level" in data ? data.level : "outcome" in data ? data.outcome : type));

describe("an unresponsive sandbox", () => {
  test("becomes late, degraded and unresponsive, and is then restarted on its own files", async () => {
    const id = await createKeptSandbox();
    await seconds(60);
    expect(await eventsOf(id), "one that is only quiet is well").toEqual([]);
    runtime().stop(id);
    await seconds(12);
    expect(await healthOf(id)).toEqual(["late"]);
    await seconds(10);
    expect(await healthOf(id)).toEqual(["late", "degraded"]);
    await seconds(10);
    expect((await healthOf(id)).slice(0, 5)).toEqual(["late", "degraded", "unresponsive", "health.restart_started", "restarted"]);
    await seconds(3);
    expect((await healthOf(id)).at(-1)).toBe("ok");
    const again = await runtime().open(id);
    expect(await runCommand(again, { argv: ["cat", "/workspace/a.txt"] })).toMatchObject({ stdout: "kept\n" });
    await again.detach();
    const [incident] = await parts().openStation().health.incidents();
    expect(incident).toMatchObject({
      subject: { kind: "sandbox", id },
      condition: "stopped",
      outcome: expect.stringContaining("restarted"),
    });
  });

  test("is restarted after each cool-down, three times an hour, then left to a person", async () => {
    const id = await createKeptSandbox();
    for (let restart = 1; restart <= 3; restart += 1) {
      runtime().stop(id);
      await seconds(120);
      expect((await healthOf(id)).filter((each) => each === "restarted")).toHaveLength(restart);
    }
    const times = (await eventsOf(id)).filter(({ type }) => type === "health.restart_started").map(({ at }) => Date.parse(at));
    expect(times).toHaveLength(3);
    runtime().stop(id);
    await seconds(200);
    expect((await healthOf(id)).filter((each) => each === "restarted")).toHaveLength(3);
    expect((await healthOf(id)).filter((each) => each === "health.escalated")).toHaveLength(1);
    const listInbox = async () => (await parts().openStation().inbox.list()).items.map(({ of, asks }) => ({ ...of, asks }));
    expect(await listInbox()).toEqual([{ kind: "sandbox", id, asks: "unresponsive" }]);
    runtime().resume(id);
    await seconds(3);
    expect((await healthOf(id)).at(-1)).toBe("ok");
    expect(await listInbox()).toEqual([]);
  });

  test("is not restarted again during the cool-down", async () => {
    await again({ cooldownMs: 300_000 });
    const id = await createKeptSandbox();
    const restarts = async () => (await healthOf(id)).filter((each) => each === "health.restart_started").length;
    runtime().stop(id);
    await seconds(35);
    expect(await restarts()).toBe(1);
    runtime().stop(id);
    await seconds(150);
    expect(await restarts()).toBe(1);
    await seconds(150);
    expect(await restarts()).toBe(2);
  });

  test("is not blamed for a suspended station or a changed clock", async () => {
    const id = await createKeptSandbox();
    for (let gap = 0; gap < 20; gap += 1) {
      time.tickedMs += 600_000;
      time.clockMs += 600_000;
      await watch().tick();
    }
    runtime().stop(id);
    // Ticks that are ten minutes late do not count.
    for (let gap = 0; gap < 40; gap += 1) {
      time.tickedMs += 600_000;
      await watch().tick();
    }
    time.clockMs += 86_400_000;
    expect(await eventsOf(id)).toEqual([]);
    runtime().resume(id);
  });

  test("is left alone while it is frozen", async () => {
    const id = await createKeptSandbox();
    runtime().stop(id, "frozen");
    await seconds(200);
    expect(await eventsOf(id)).toEqual([]);
    runtime().resume(id);
  });

  test("is not restarted if it responds when asked directly", async () => {
    const id = await createKeptSandbox();
    runtime().stop(id, "unknown");
    const fake = runtime();
    const look = fake.look?.bind(fake);
    // It wakes up at the moment it is found unresponsive.
    fake.look = async (each) => {
      const seen = await look?.(each);
      if ((await healthOf(id)).includes("unresponsive") && seen?.condition === "unknown") fake.resume(id);
      return { ...seen, condition: "unknown" } as never;
    };
    await seconds(40);
    expect(await healthOf(id)).toContain("recovered");
    expect(await healthOf(id)).not.toContain("restarted");
  });

  test("is restarted once more after a station died during its restart", async () => {
    const id = await createKeptSandbox();
    runtime().stop(id);
    await local().core.log.append(sandboxStream(id), [
      { type: "health.restart_started", version: 1, data: { subject: { kind: "sandbox", id }, incident: "inc_aaaaaaaaaaaa", why: "x" } },
    ]);
    await again();
    await seconds(200);
    const all = await eventsOf(id);
    expect(all.filter(({ type }) => type === "health.restart_started")).toHaveLength(2);
    expect(all.find(({ type }) => type === "health.restart_ended")?.data).toMatchObject({
      incident: "inc_aaaaaaaaaaaa",
      outcome: "failed",
    });
  });

  test("is only reported if restarts are disabled", async () => {
    await again({ restart: false });
    const id = await createKeptSandbox();
    runtime().stop(id);
    await seconds(100);
    expect(await healthOf(id)).toEqual(["late", "degraded", "unresponsive"]);
    const station = parts().openStation();
    expect((await station.sandboxes.get(id)).health).toBe("unresponsive");
    expect((await station.health.list()).subjects).toContainEqual(
      expect.objectContaining({ subject: { kind: "sandbox", id }, level: "unresponsive", condition: "stopped" }),
    );
    runtime().resume(id);
    await seconds(3);
    expect((await station.sandboxes.get(id)).health).toBeUndefined();
    await station[Symbol.asyncDispose]();
  });
});
