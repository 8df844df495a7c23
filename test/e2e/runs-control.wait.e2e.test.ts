import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { type Going, type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";
import { isThroughStation, stationMode } from "../support/station-modes.ts";
import { bash, reasonOf, strictRuns } from "../support/strict-runs.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const idOf = (events: readonly LoggedEvent[]): string => (events[0]?.type === "run.created" ? events[0].data.run : "");

const start = strictRuns(cli);

const asking: Script = {
  turns: [{ calls: [bash("git commit -m x || echo tried")] }, { say: "Done.", expect: { contains: ["the task"], news: ["tried"] } }],
};

describe("a question", () => {
  test("can be answered from a second process while the first waits", async () => {
    const { going, id } = await start(asking, "--on-ask", "wait");
    const questionEvent = await going.event("permission.asked");
    expect(questionEvent.data.text).toContain("git commit");
    const list = JSON.parse((await cli.run(["ps", "--all", "--json"])).text);
    expect(list).toMatchObject([{ run: id, status: "paused: permission" }]);
    const answered = await cli.run(["answer", id, "allow", "--json"]);
    expect(JSON.parse(answered.text)).toMatchObject({ run: id, question: questionEvent.data.question, answer: "allow" });
    const done = await going.ended;
    expect(done.code, done.text.slice(-800)).toBe(0);
  });

  test("can be answered after kill -9 of the first process", async ({ skip }) => {
    skip(isThroughStation, "the station drives the run, which continues when the command is killed (tested beside it)");
    const { going, id } = await start(asking, "--on-ask", "wait");
    await going.event("run.paused");
    going.child.kill("SIGKILL");
    await going.ended;
    const listed = JSON.parse((await cli.run(["ps", "--all", "--json"])).text) as { run: string }[];
    expect(listed.find(({ run }) => run === id)).toMatchObject({ status: "interrupted" });
    for (const argv of [
      ["attach", id],
      ["logs", "-f", id],
    ]) {
      const watched = await cli.run(argv);
      expect(watched.text).toContain("git commit");
      expect(watched.stderr).toContain(`no process drives ${id}`);
    }
    const answered = await cli.run(["answer", id, "deny", "not yet"]);
    expect(answered).toMatchObject({ code: 0, stderr: expect.stringContaining("continues in the background") });
    const resumed = await cli.run(["attach", id, "--json"]);
    // The script expects the command to be tried, and is not prepared for a denial.
    const events = await cli.events(id);
    expect(events.find((event) => event.type === "tool.ended")).toMatchObject({
      data: { outcome: "denied", text: expect.stringContaining("not yet") },
    });
    expect(reasonOf(resumed.events)).toBe("error");
    expect((await cli.run(["answer", id, "allow"])).stderr).toMatch(/no such open question|has ended/);
  });

  test("is denied in an unattended run", async () => {
    const { going } = await start({
      turns: [{ calls: [bash("git commit -m x")] }, { say: "Ok.", expect: { news: ["no person attends this run"] } }],
    });
    expect((await going.ended).code).toBe(0);
  });
});

describe("messages", () => {
  /**
   * Its command runs until the test ends it, so messages arrive during the command no matter how busy the machine is.
   * The next turn asks a question, so the sandbox exists until the test knows that the command has ended.
   */
  const slow = ([second, ...later]: Script["turns"]): Script => ({
    turns: [
      { calls: [bash("until [ -e /tmp/over ]; do sleep 0.05; done; echo slept")] },
      { ...second, calls: [bash("git commit -m x || echo tried")] },
      ...later,
    ],
  });
  const endCommand = async ({ going, id }: { going: Going; id: string }) => {
    const { sandbox } = (await going.event("run.sandboxed")).data;
    const result = await cli.run(["exec", "--sandbox", sandbox, "--", "touch", "/tmp/over"]);
    expect(result.code, result.stderr).toBe(0);
    await going.event("permission.asked");
    expect((await cli.run(["answer", id, "allow"])).code).toBe(0);
  };

  test("steer the next call, and the receipt names it", async () => {
    const script = slow([{ expect: { news: ["slept", "use tabs"], contains: ["the task"] } }, { say: "Will do." }]);
    const { going, id } = await start(script, "--on-ask", "wait");
    await going.event("tool.started");
    const sending = cli.run(["send", id, "use tabs", "--wait", "--json"]);
    await going.event("message.received");
    await endCommand({ going, id });
    const sent = JSON.parse((await sending).text);
    expect(sent).toMatchObject({ mode: "steer", seenBy: "m2" });
    const done = await going.ended;
    expect(done.code, done.text.slice(-800)).toBe(0);
    expect(done.events.find((event) => event.type === "model.requested" && event.data.call === "m2")).toMatchObject({
      data: { messages: [sent.message] },
    });
  });

  test("wait for the end of the turn when queued", async () => {
    const script = slow([
      { expect: { absent: ["afterwards tidy"] } },
      { say: "Done.", expect: { absent: ["afterwards tidy"] } },
      { say: "Tidied.", expect: { news: ["afterwards tidy"] } },
    ]);
    const { going, id } = await start(script, "--on-ask", "wait");
    await going.event("tool.started");
    expect((await cli.run(["send", id, "--queue", "afterwards tidy"])).code).toBe(0);
    await endCommand({ going, id });
    const done = await going.ended;
    expect(done.code, done.text.slice(-800)).toBe(0);
    expect(done.events.at(-1)).toMatchObject({ data: { text: "Tidied.", steps: 4 } });
  });

  test("can interrupt a command that would never end", async () => {
    const { going, id } = await start({
      turns: [{ calls: [bash("echo begun; sleep infinity")] }, { say: "Changed course.", expect: { news: ["Interrupted", "stop that"] } }],
    });
    await going.event("tool.streamed");
    expect((await cli.run(["send", id, "--interrupt", "stop that"])).code).toBe(0);
    const done = await going.ended;
    expect(done.code, done.text.slice(-800)).toBe(0);
    expect(done.events.find((event) => event.type === "tool.ended")).toMatchObject({ data: { outcome: "interrupted" } });
  });
});

describe("another process", () => {
  test("can stop a run in the middle of a command", async () => {
    const { going, id } = await start({ turns: [{ calls: [bash("echo begun; sleep 60")] }] });
    await going.event("tool.streamed");
    const stopped = await cli.run(["stop", id, "--json"]);
    expect(JSON.parse(stopped.text)).toEqual({ run: id, stopped: true });
    const done = await going.ended;
    expect([done.code, reasonOf(done.events)]).toEqual([130, "cancelled"]);
    // Stopping again succeeds, since the run is in the requested state.
    expect((await cli.run(["stop", id])).code).toBe(0);
  });

  test("can follow a detached run to its end with logs -f and attach", async () => {
    const model = await cli.script({ turns: [{ calls: [bash("sleep 1; echo background work")] }, { say: "Finished." }] });
    const detached = await cli.run(["run", "the task", "--no-workspace", "--model", model, "--detach"]);
    const id = detached.text.trim();
    expect(id).toMatch(/^run_[a-z2-7]{12}$/);
    const [logs, attached] = await Promise.all([cli.run(["logs", "-f", id]), cli.run(["attach", id, "--json"])]);
    expect(logs.text).toContain("background work");
    expect(logs.text).toMatch(/done after 2 steps/);
    expect([attached.code, reasonOf(attached.events)]).toEqual([0, "done"]);
    expect((await cli.run(["resume", id])).stderr).toMatch(/is done[\s\S]*caisson send/);
    expect(JSON.parse((await cli.run(["ps", "--all", "--json"])).text).find((each: { run: string }) => each.run === id)).toMatchObject({
      status: "done",
    });
  });

  test("can resume a run and its command after SIGTERM", async ({ skip }) => {
    skip(isThroughStation, "the station drives the run, which continues when the command ends (tested beside it)");
    const folder = await cli.folder();
    const model = await cli.script({
      turns: [{ calls: [bash("echo ran >> /workspace/counter; sleep 2; echo over")] }, { say: "Done.", expect: { news: ["over"] } }],
    });
    const going = cli.start(["run", "the task", "--repo", folder, "--model", model, "--json"]);
    await going.event("tool.started");
    going.child.kill("SIGTERM");
    const first = await going.ended;
    expect(first.code).toBe(143);
    const id = idOf(first.events);
    expect(JSON.parse((await cli.run(["ps", "--all", "--json"])).text).find((each: { run: string }) => each.run === id)).toMatchObject({
      status: "interrupted",
    });
    const resumed = await cli.run(["resume", id, "--json"]);
    expect(resumed.code, resumed.text.slice(-800)).toBe(0);
    expect(readFileSync(join(cli.home(), "sessions", id, "layer", "upper", "counter"), "utf8")).toBe("ran\n");
    // Measured from the start of the command, not from the resume.
    const ended = resumed.events.find(({ type }) => type === "tool.ended");
    expect(ended).toMatchObject({ data: { outcome: "ok", durationMs: expect.any(Number) } });
    expect(ended?.type === "tool.ended" && ended.data.durationMs).toBeGreaterThanOrEqual(2000);
  });

  test("cannot use a session in use, and learns who uses it and what to do", async () => {
    const { going, id } = await start({ turns: [{ calls: [bash("sleep 60")] }] }, "--session", "shared");
    await going.event("tool.started");
    const second = await cli.run(["run", "other", "--session", "shared", "--model", await cli.script({ turns: [{ say: "Hi." }] })]);
    expect(second.code).toBe(125);
    expect(second.stderr).toMatch(
      new RegExp(
        `session shared is in use by ${id} \\(process \\d+ on .*\\)[\\s\\S]*caisson stop ${id}[\\s\\S]*session unlock --force shared`,
      ),
    );
    const twice = await cli.run(["resume", id]);
    expect(twice).toMatchObject({ code: 125, stderr: expect.stringMatching(/driven by another process[\s\S]*caisson attach/) });
    expect((await cli.run(["stop", id])).code).toBe(0);
    await going.ended;
    // The refused command created no run.
    expect(JSON.parse((await cli.run(["ps", "--json", "--all"])).text).filter((each: { task: string }) => each.task === "other")).toEqual(
      [],
    );
  });
});

describe.runIf(stationMode !== "none")("a run that a station drives", () => {
  test.each(["SIGKILL", "SIGTERM"] as const)("continues when the command that started it gets %s", async (signal) => {
    const { going, id } = await start(asking, "--on-ask", "wait");
    await going.event("permission.asked");
    going.child.kill(signal);
    const { code, signal: killedBy } = await going.ended;
    expect(killedBy ?? code).toBe(signal === "SIGKILL" ? signal : 143);
    const listed = JSON.parse((await cli.run(["ps", "--all", "--json"])).text) as { run: string }[];
    expect(listed.find(({ run }) => run === id)).toMatchObject({ status: "paused: permission" });
    expect(await cli.run(["answer", id, "allow"])).toMatchObject({ code: 0, stderr: "" });
    const attached = await cli.run(["attach", id, "--json"]);
    expect([attached.code, reasonOf(attached.events)]).toEqual([0, "done"]);
    expect(attached.events.filter((event) => event.type === "run.claimed")).toHaveLength(1);
  });
});

describe("a recorded run", () => {
  test("is replayed without its model, and fails if the task changed", async () => {
    const dir = join(cli.base(), "recording");
    const model = await cli.script({ turns: [{ calls: [bash("echo hi")] }, { say: "Done." }] });
    const run = (task: string, ...more: string[]) => cli.run(["run", task, "--no-workspace", "--model", model, "--json", ...more]);
    expect((await run("the task", "--record", dir)).code).toBe(0);
    await writeFile(model.slice("scripted:".length), "not a script: [");
    const replayed = await run("the task", "--replay", dir);
    expect(replayed.code, replayed.text.slice(-800)).toBe(0);
    expect(replayed.events.at(-1)).toMatchObject({ data: { text: "Done." } });
    const changed = await run("another task", "--replay", dir);
    expect(changed.code).toBe(1);
    expect(changed.events.at(-1)).toMatchObject({
      data: { text: expect.stringMatching(/differs from its recording[\s\S]*another task/) },
    });
  });
});

describe("invalid ids", () => {
  test("are refused with a hint by every command", async () => {
    for (const argv of [["logs"], ["attach"], ["resume"], ["send", "RUN", "x"], ["answer", "RUN", "allow"], ["stop"], ["diff"]]) {
      const id = "run_aaaaaaaaaaaa";
      const words = argv.includes("RUN") ? argv.map((word) => (word === "RUN" ? id : word)) : [...argv, id];
      const plain = await cli.run(words);
      expect(plain, words.join(" ")).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(/there is no run run_a+\nhint: `caisson ps --all`/),
      });
    }
    const json = await cli.run(["stop", "--json", "nonsense"]);
    expect(JSON.parse(json.text)).toMatchObject({ error: { code: "not_found", hint: expect.any(String) } });
    const empty = await cli.run(["logs"], { home: join(cli.base(), "fresh") });
    expect(empty).toMatchObject({ code: 125, stderr: expect.stringContaining("there are no runs yet") });
  });
});
