import { expect, test } from "vitest";
import type { RunEvent } from "../../src/contract/run/run-event.ts";
import {
  circles,
  done,
  eventsOf,
  gate,
  guardedStations,
  long,
  ofGuardian,
  open,
  shell,
  until,
  write,
} from "../support/guarded-stations.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const { newHome, serve, over, begin } = guardedStations(cli);

test("a looping run is nudged and makes progress, and the commands explain why", long, async () => {
  const served = await serve(await newHome("nudge"));
  try {
    const run = await begin(served, [...circles(1, 8), gate("told"), write("a.txt"), gate("seen"), done]);
    const { data: decided } = await until(served, run, "guardian.decided");
    expect(decided).toMatchObject({
      action: "nudge",
      findings: [{ detector: "repetition", text: expect.stringContaining("calls of bash") }],
    });
    await open(served, run, "told");
    expect((await until(served, run, "guardian.settled")).data).toMatchObject({ decision: decided.decision, effect: "progress" });
    await open(served, run, "seen");
    expect((await until(served, run, "run.ended")).data.reason).toBe("done");
    const messages = (await eventsOf(served, run)).flatMap((event) => (event.type === "message.received" ? [event.data] : []));
    expect(messages).toMatchObject([{ source: "guardian", mode: "steer", text: expect.stringContaining("nearly the same") }]);
    const { home } = served;
    expect((await cli.run(["logs", run], { home })).text).toContain("guardian nudge");
    expect((await cli.run(["guardian", "log"], { home })).text).toMatch(new RegExp(`${run} +nudge .*progress`));
    expect(JSON.parse((await cli.run(["guardian", "log", run, "--json"], { home })).text)).toMatchObject([
      { action: "nudge", effect: "progress" },
    ]);
    const explained = (await cli.run(["guardian", "explain", run], { home })).text;
    expect(explained).toContain(decided.decision);
    expect(explained).toMatch(/effect +progress: a file was changed/);
    expect((await cli.run(["guardian", "status", "--json"], { home })).text).toContain('"running":true');
  } finally {
    await over(served);
  }
});

test("a run that ignores the nudge is held, and continues when a person allows it", long, async () => {
  const served = await serve(await newHome("pause", { effectSteps: 2 }));
  try {
    const run = await begin(served, [...circles(1, 8), gate("told"), ...circles(20, 6), gate("held"), done]);
    await until(served, run, "guardian.decided");
    await open(served, run, "told");
    expect((await until(served, run, "guardian.decided", 2)).data.action).toBe("pause");
    const { data: question } = await until(served, run, "permission.asked");
    expect(question).toMatchObject({ kind: "stuck", text: expect.stringContaining("The guardian sees") });
    expect((await until(served, run, "guardian.settled")).data.effect).toBe("none");
    expect((await cli.run(["answer", run, "allow"], { home: served.home })).code).toBe(0);
    // The run may be held before its gate. If that interrupted its call, it may already have ended.
    await open(served, run, "held").catch(() => undefined);
    expect((await until(served, run, "run.ended")).data.reason).toBe("done");
  } finally {
    await over(served);
  }
});

test("a run that ignores the nudge is stopped if the configuration allows it", long, async () => {
  const served = await serve(await newHome("stop", { effectSteps: 2, atMost: "stop", bands: { pause: 0, stop: 0.5 } }));
  try {
    const run = await begin(served, [...circles(1, 8), gate("told"), ...circles(20, 6), gate("never"), done]);
    await until(served, run, "guardian.decided");
    await open(served, run, "told");
    const ended = await until(served, run, "run.ended");
    expect(ended.data).toMatchObject({ reason: "cancelled", text: expect.stringContaining("guardian") });
    expect(await served.client.guardian.log({ run })).toMatchObject([
      { action: "stop", effect: "ended" },
      { action: "nudge", effect: "none" },
    ]);
  } finally {
    await over(served);
  }
});

test("a busy run that only uses the shell, and one with guardian off, are left alone", long, async () => {
  const served = await serve(await newHome("good", { noProgressSteps: 5 }));
  try {
    const busy = await begin(served, [...Array.from({ length: 30 }, (_, at) => shell(`echo ${at} >> notes.txt`)), gate("busy"), done]);
    const off = await begin(served, [...circles(1, 20), gate("off"), done], { guardian: "off" });
    const [atBusy, atOff] = [until(served, busy, "tool.started", 31), until(served, off, "tool.started", 21)];
    await Promise.all([atBusy, atOff]);
    // The guardian examines events in order: when it nudges this run, it has examined the others.
    const fence = await begin(served, [...circles(1, 8), gate("fence"), done]);
    await until(served, fence, "guardian.decided");
    for (const [run, name] of [
      [busy, "busy"],
      [off, "off"],
      [fence, "fence"],
    ] as const) {
      await open(served, run, name);
      expect((await until(served, run, "run.ended")).data.reason).toBe("done");
    }
    expect(ofGuardian(await eventsOf(served, busy))).toEqual([]);
    expect(ofGuardian(await eventsOf(served, off))).toEqual([]);
  } finally {
    await over(served);
  }
});

test("a queued run that duplicates a running one goes behind the others", long, async () => {
  const served = await serve(await newHome("reprioritize", {}, { runsMax: 1, runsPerOwnerMax: 1 }));
  try {
    const source = { kind: "folder", path: await cli.folder({ "README.md": "one" }) } as const;
    const first = await begin(served, [gate("first"), done], {}, { source });
    await until(served, first, "tool.started");
    const same = await begin(served, [done], {}, { source });
    const { data: decided } = await until(served, same, "guardian.decided");
    expect(decided).toMatchObject({ action: "reprioritize", findings: [{ detector: "duplicate", text: expect.stringContaining(first) }] });
    expect((await until(served, same, "run.prioritized")).data).toMatchObject({ by: "guardian", priority: expect.any(Number) });
    const other = await begin(served, [done], {}, { source, task: "Write the handbook's chapter on installing it" });
    await open(served, first, "first");
    const [otherBegan, sameBegan] = await Promise.all([until(served, other, "run.ended"), until(served, same, "run.sandboxed")]);
    expect(Date.parse(otherBegan.at)).toBeLessThanOrEqual(Date.parse(sameBegan.at));
    expect((await until(served, same, "run.ended")).data.reason).toBe("done");
    expect(ofGuardian(await eventsOf(served, other))).toEqual([]);
  } finally {
    await over(served);
  }
});

test("the later of two runs that do the same work on the same files gets a message", long, async () => {
  const served = await serve(await newHome("duplicate"));
  try {
    const source = { kind: "folder", path: await cli.folder({ "README.md": "one" }) } as const;
    const first = await begin(served, [write("a.txt"), write("b.txt"), gate("first"), done], {}, { source });
    await until(served, first, "tool.started", 3);
    const second = await begin(served, [write("a.txt"), write("b.txt"), write("c.txt"), gate("second"), done], {}, { source });
    const { data: decided } = await until(served, second, "guardian.decided");
    expect(decided).toMatchObject({
      action: "nudge",
      findings: [{ detector: "duplicate", text: expect.stringMatching(`${first}.* both changed 2 of the same files`) }],
    });
    for (const [run, name] of [
      [first, "first"],
      [second, "second"],
    ] as const) {
      await open(served, run, name);
      expect((await until(served, run, "run.ended")).data.reason).toBe("done");
    }
    expect(ofGuardian(await eventsOf(served, first))).toEqual([]);
  } finally {
    await over(served);
  }
});

// The test kills the station that it starts; in the modes that use another station, it starts none.
test.runIf(stationMode === "none").each([
  ["before it is recorded", "guardian.decided:before"],
  ["after it and its action are recorded", "guardian.decided:after"],
])("kill -9 of the station at a decision, %s: the next one repeats nothing", long, async (_, point) => {
  const home = await newHome(point.replaceAll(/[.:]/g, "-"));
  const first = await serve(home, { CAISSON_CRASH_AT: point });
  const run = await begin(first, [...circles(1, 8), gate("told"), write("a.txt"), gate("seen"), done]);
  expect((await first.going.ended).signal).toBe("SIGKILL");
  const second = await serve(home);
  try {
    await until(second, run, "guardian.decided");
    await open(second, run, "told");
    expect((await until(second, run, "guardian.settled")).data.effect).toBe("progress");
    await open(second, run, "seen");
    expect((await until(second, run, "run.ended")).data.reason).toBe("done");
    const events = await eventsOf(second, run);
    const count = (type: RunEvent["type"]) => events.filter((event) => event.type === type).length;
    expect([count("guardian.decided"), count("message.received"), count("guardian.settled")]).toEqual([1, 1, 1]);
  } finally {
    await over(second);
  }
});
