import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { RunEvent } from "../../src/contract/run-event.ts";
import type { WorkspaceSource } from "../../src/contract/session.ts";
import { type Reply, startModelServer } from "../support/model-server.ts";
import { type Going, useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const long = { timeout: 300_000 };

interface Served {
  going: Going;
  client: Client;
  home: string;
}

/** As by default, but for a minimum age that scripted runs reach. */
async function newHome(name: string, guardian: object = {}, station: object = {}): Promise<string> {
  const home = join(cli.base(), `home-${name}`);
  await mkdir(home, { recursive: true, mode: 0o700 });
  const settings = { stepsMin: 2, workedMsMin: 0, repetitions: 4, ...guardian };
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci", guardian: settings, station }));
  return home;
}

async function serve(home: string, env: Record<string, string> = {}): Promise<Served> {
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, home, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

async function over({ going, home }: Served): Promise<void> {
  await cli.run(["down"], { home });
  await going.ended;
  expect(cli.sandboxes(home)).toEqual([]);
}

type Turn = Script["turns"][number];
const shell = (command: string): Turn => ({ calls: [{ tool: "bash", arguments: { command, timeout_ms: 280_000 } }] });
/** Nearly the same each time, with nearly the same result: no two calls are equal. */
const circles = (from: number, count: number): Turn[] =>
  Array.from({ length: count }, (_, at) => shell(`test -e /nowhere/${from + at} || echo attempt ${from + at}: still not there`));
/** Holds the run until the test lets it go on: outside the workspace, whose files are looked at. */
const gate = (name: string): Turn => shell(`while [ ! -e /tmp/${name} ]; do sleep 0.1; done`);
const write = (path: string): Turn => ({ calls: [{ tool: "write", arguments: { path, content: "progress" } }] });
const done: Turn = { say: "Done (this model is scripted)." };

async function begin({ client }: Served, turns: Turn[], settings: object = {}, more: { task?: string; source?: WorkspaceSource } = {}) {
  const model = await cli.script({ about: "a scripted model that runs in circles", turns });
  const { run } = await client.runs.start({
    task: "Make the parser's tests pass",
    model,
    settings: { onAsk: "wait", maxSteps: 200, ...settings },
    ...more,
  });
  return run;
}

/** Resolves with the first event of this type, past or to come. */
async function until<Type extends RunEvent["type"]>(
  { client }: Served,
  run: string,
  type: Type,
  nth = 1,
): Promise<Extract<RunEvent, { type: Type }>> {
  let seen = 0;
  for await (const event of client.runs.events(run, { follow: true })) {
    if (event.type !== type) continue;
    seen += 1;
    if (seen === nth) return event as never;
  }
  throw new Error(`${run} ended without ${nth} ${type}`);
}

async function open(served: Served, run: string, name: string): Promise<void> {
  const { data } = await until(served, run, "run.sandboxed");
  await served.client.sandboxes.exec(data.sandbox, { argv: ["touch", `/tmp/${name}`] });
}

async function eventsOf({ client }: Served, run: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of client.runs.events(run)) events.push(event);
  return events;
}

const ofGuardian = (events: readonly RunEvent[]) => events.filter(({ type }) => type.startsWith("guardian."));

test("a run in circles is nudged, comes back to progress, and all of it can be told", long, async () => {
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

test("one that does not heed it is held and asked about; a person lets it go on", long, async () => {
  const served = await serve(await newHome("pause", { effectSteps: 2 }));
  try {
    const run = await begin(served, [...circles(1, 8), gate("told"), ...circles(20, 6), gate("held"), done]);
    await until(served, run, "guardian.decided");
    await open(served, run, "told");
    expect((await until(served, run, "guardian.decided", 2)).data.action).toBe("pause");
    const { data: asked } = await until(served, run, "permission.asked");
    expect(asked).toMatchObject({ kind: "stuck", text: expect.stringContaining("The guardian sees") });
    expect((await until(served, run, "guardian.settled")).data.effect).toBe("none");
    expect((await cli.run(["answer", run, "allow"], { home: served.home })).code).toBe(0);
    // It may have been held before it came to its gate; where that was interrupted, the run may be over by now.
    await open(served, run, "held").catch(() => undefined);
    expect((await until(served, run, "run.ended")).data.reason).toBe("done");
  } finally {
    await over(served);
  }
});

test("one that does not heed it is stopped, where that is allowed", long, async () => {
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

test("a busy run that works by shell alone is not touched, and off means off", long, async () => {
  const served = await serve(await newHome("good", { noProgressSteps: 5 }));
  try {
    const busy = await begin(served, [...Array.from({ length: 30 }, (_, at) => shell(`echo ${at} >> notes.txt`)), gate("busy"), done]);
    const off = await begin(served, [...circles(1, 20), gate("off"), done], { guardian: "off" });
    const [atBusy, atOff] = [until(served, busy, "tool.started", 31), until(served, off, "tool.started", 21)];
    await Promise.all([atBusy, atOff]);
    // What comes later is seen later: when this one was nudged, the others had been looked at.
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

test("one that waits with the same work as one that goes is put behind the others", long, async () => {
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

test("of two that do the same work on the same files, the later one is told", long, async () => {
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

// The station that is killed is the one that the test starts: through another there is none to kill.
test.runIf(stationMode === "none").each([
  ["before it is written down", "guardian.decided:before"],
  ["when it was written down with what is done", "guardian.decided:after"],
])("kill -9 of the station at a decision, %s: the next one goes on, and nothing is done twice", long, async (_, point) => {
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

/** A station whose guardian asks a judge by OpenAI's protocol, and finds nothing by itself; the judge is a script. */
async function serveJudged(name: string, reply: Reply) {
  const server = await startModelServer(() => reply);
  const judge = { model: "compatible/judge", everySteps: 1, callsMax: 1 };
  const home = await newHome(name, { repetitions: 1000, noProgressSteps: 10_000, errors: 1000, judge });
  return { server, served: await serve(home, { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key-of-the-test" }) };
}
/** Each is progress of a kind, so that nobody but a judge has anything to say of it. */
const sheep = (from: number, count: number): Turn[] => Array.from({ length: count }, (_, at) => write(`sheep-${from + at}.txt`));

test(
  "a judge that says that a run has left its task has it nudged, with what it said as evidence, and is asked so often and no more",
  long,
  async () => {
    const { server, served } = await serveJudged("judge", { say: '{"coherence": 0.1, "why": "it counts sheep"}' });
    try {
      const run = await begin(served, [...sheep(1, 8), gate("told"), ...sheep(20, 8), done]);
      expect((await until(served, run, "guardian.judged")).data).toMatchObject({ coherence: 0.1, text: "it counts sheep" });
      const { data: decided } = await until(served, run, "guardian.decided");
      expect(decided).toMatchObject({
        action: "nudge",
        findings: [{ detector: "drift", text: "the judge says 0.1: it counts sheep", events: [expect.any(Number)] }],
      });
      await open(served, run, "told");
      await open(served, run, "seen");
      await until(served, run, "run.ended");
      const asked = (await eventsOf(served, run)).filter(({ type }) => type === "guardian.judged").length;
      expect(asked).toBeGreaterThan(0);
      expect(asked).toBeLessThanOrEqual(3);
      expect(server.requests.length).toBeLessThanOrEqual(3);
      // What the agent did is between marks, and no tool is offered.
      const [{ messages = [], tools = [] } = {}] = server.requests;
      expect([tools, JSON.stringify(messages[0])]).toEqual([[], expect.stringContaining("You judge whether an agent")]);
      expect(JSON.stringify(messages[1])).toMatch(/<[0-9a-f]{24}>[\s\S]*Make the parser's tests pass/);
      const explained = (await cli.run(["guardian", "explain", run], { home: served.home })).text;
      expect(explained).toMatch(/judge +asked 1 times, \$0\.\d{4}/);
    } finally {
      await over(served);
      await server[Symbol.asyncDispose]();
    }
  },
);

test.each([
  ["that is broken", { status: 500 }],
  ["that talks nonsense", { say: "Stop that run at once, I am the judge." }],
] as [string, Reply][])("a judge %s changes nothing for a run", long, async (what, reply) => {
  const { server, served } = await serveJudged(`judge-${"status" in reply ? "broken" : "nonsense"}`, reply);
  try {
    const run = await begin(served, [...sheep(1, 8), gate("asked"), done]);
    await expect.poll(() => server.requests.length, { message: what, timeout: 200_000 }).toBeGreaterThan(0);
    await open(served, run, "asked");
    expect((await until(served, run, "run.ended")).data.reason).toBe("done");
    const seen = ofGuardian(await eventsOf(served, run));
    expect(seen.filter(({ type }) => type !== "guardian.judged")).toEqual([]);
    for (const event of seen) expect(event.data).toMatchObject({ coherence: null });
    expect((await cli.run(["guardian", "status", "--json"], { home: served.home })).text).toContain('"running":true');
  } finally {
    await over(served);
    await server[Symbol.asyncDispose]();
  }
});
