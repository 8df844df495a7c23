import { describe, expect, test } from "vitest";
import type { HealthEvent } from "../../contract/health-event.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import { sandboxStream } from "./health-log.ts";
import { useWatch } from "./testing.ts";

const { seconds, time, parts, local, runtime, watch, again } = useWatch();

async function kept(): Promise<string> {
  const sandbox = await (await parts().runtimes.get("fake")).create(parts().spec({ keep: true }));
  await sandbox.writeFile("/workspace/a.txt", Buffer.from("kept\n"));
  await sandbox.release();
  // Until the watch has it open.
  while (runtime().connections(sandbox.id) === 0) await seconds(1);
  await seconds(2);
  return sandbox.id;
}

async function eventsOf(id: string): Promise<HealthEvent[]> {
  return (await local().log.read(sandboxStream(id))) as unknown as HealthEvent[];
}
const told = async (id: string) =>
  (await eventsOf(id)).map(({ type, data }) => ("level" in data ? data.level : "outcome" in data ? data.outcome : type));

describe("a sandbox that gives no sign of life", () => {
  test("is late, degraded, unresponsive; then it is restarted on its own files, and an incident is kept", async () => {
    const id = await kept();
    await seconds(60);
    expect(await eventsOf(id), "one that is only quiet is well").toEqual([]);
    runtime().stop(id);
    await seconds(12);
    expect(await told(id)).toEqual(["late"]);
    await seconds(10);
    expect(await told(id)).toEqual(["late", "degraded"]);
    await seconds(10);
    expect((await told(id)).slice(0, 5)).toEqual(["late", "degraded", "unresponsive", "health.restart_started", "restarted"]);
    await seconds(3);
    expect((await told(id)).at(-1)).toBe("ok");
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

  test("is restarted not before the cool-down, three times an hour, and then left to a person", async () => {
    const id = await kept();
    for (let restart = 1; restart <= 3; restart += 1) {
      runtime().stop(id);
      await seconds(120);
      expect((await told(id)).filter((each) => each === "restarted")).toHaveLength(restart);
    }
    const times = (await eventsOf(id)).filter(({ type }) => type === "health.restart_started").map(({ at }) => Date.parse(at));
    expect(times).toHaveLength(3);
    runtime().stop(id);
    await seconds(200);
    expect((await told(id)).filter((each) => each === "restarted")).toHaveLength(3);
    expect((await told(id)).filter((each) => each === "health.escalated")).toHaveLength(1);
    const asked = async () => (await parts().openStation().inbox.list()).items.map(({ of, asks }) => ({ ...of, asks }));
    expect(await asked()).toEqual([{ kind: "sandbox", id, asks: "unresponsive" }]);
    runtime().goOn(id);
    await seconds(3);
    expect((await told(id)).at(-1)).toBe("ok");
    expect(await asked()).toEqual([]);
  });

  test("is left as it is until the cool-down is over", async () => {
    await again({ cooldownMs: 300_000 });
    const id = await kept();
    const restarts = async () => (await told(id)).filter((each) => each === "health.restart_started").length;
    runtime().stop(id);
    await seconds(35);
    expect(await restarts()).toBe(1);
    runtime().stop(id);
    await seconds(150);
    expect(await restarts()).toBe(1);
    await seconds(150);
    expect(await restarts()).toBe(2);
  });

  test("is not blamed for a station that stood still itself, nor for a clock that was set", async () => {
    const id = await kept();
    for (let gap = 0; gap < 20; gap += 1) {
      time.tickedMs += 600_000;
      time.clockMs += 600_000;
      await watch().tick();
    }
    runtime().stop(id);
    // Ticks that come ten minutes late count for nothing.
    for (let gap = 0; gap < 40; gap += 1) {
      time.tickedMs += 600_000;
      await watch().tick();
    }
    time.clockMs += 86_400_000;
    expect(await eventsOf(id)).toEqual([]);
    runtime().goOn(id);
  });

  test("is left alone while somebody holds it frozen", async () => {
    const id = await kept();
    runtime().stop(id, "frozen");
    await seconds(200);
    expect(await eventsOf(id)).toEqual([]);
    runtime().goOn(id);
  });

  test("is asked first: one that answers after all is not touched", async () => {
    const id = await kept();
    runtime().stop(id, "unknown");
    const fake = runtime();
    const look = fake.look?.bind(fake);
    // It wakes up just when it is found unresponsive.
    fake.look = async (each) => {
      const seen = await look?.(each);
      if ((await told(id)).includes("unresponsive") && seen?.condition === "unknown") fake.goOn(id);
      return { ...seen, condition: "unknown" } as never;
    };
    await seconds(40);
    expect(await told(id)).toContain("recovered");
    expect(await told(id)).not.toContain("restarted");
  });

  test("that a station died over is counted, and neither forgotten nor tried again and again", async () => {
    const id = await kept();
    runtime().stop(id);
    await local().log.append(sandboxStream(id), [
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

  test("is only told of where restarts are switched off", async () => {
    await again({ restart: false });
    const id = await kept();
    runtime().stop(id);
    await seconds(100);
    expect(await told(id)).toEqual(["late", "degraded", "unresponsive"]);
    const station = parts().openStation();
    expect((await station.sandboxes.get(id)).health).toBe("unresponsive");
    expect((await station.health.list()).subjects).toContainEqual(
      expect.objectContaining({ subject: { kind: "sandbox", id }, level: "unresponsive", condition: "stopped" }),
    );
    runtime().goOn(id);
    await seconds(3);
    expect((await station.sandboxes.get(id)).health).toBeUndefined();
    await station[Symbol.asyncDispose]();
  });
});
