import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { otherVersions, pretendOtherGuest } from "../support/older-guest.ts";
import { type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const idOf = (events: readonly LoggedEvent[]): string => (events[0]?.type === "run.created" ? events[0].data.run : "");
const sandboxOf = (events: readonly LoggedEvent[]): string =>
  events.flatMap((event) => (event.type === "run.sandboxed" ? [event.data.sandbox] : []))[0] ?? "";

/**
 * Writes files of all three kinds (in the workspace, the home and the root layer), then runs a command that still runs
 * when its station dies.
 */
const script = {
  turns: [
    { calls: [bash("echo workspace > file.txt; echo home > ~/file.txt; sudo sh -c 'echo root > /opt/file.txt'")] },
    { calls: [bash("echo began >> counter; echo up; sleep 600")] },
    { calls: [bash("cat counter file.txt ~/file.txt /opt/file.txt")], expect: { news: ["The sandbox died during this call"] } },
    { say: "All here.", expect: { news: ["began\nworkspace\nhome\nroot"] } },
  ],
};

function expectRestarted(events: readonly LoggedEvent[], sandbox: string): void {
  expect(events.flatMap((event) => (event.type === "tool.ended" ? [event.data.outcome] : []))).toEqual(["ok", "lost", "ok"]);
  const sandboxed = events.flatMap((event) => (event.type === "run.sandboxed" ? [event.data] : []));
  expect(sandboxed.slice(1)).toMatchObject([{ sandbox, why: "lost", files: "kept", restarted: true }]);
  const notices = events.flatMap((event) => (event.type === "run.noticed" ? [event.data.text] : []));
  expect(notices).toContainEqual(expect.stringContaining(`Another version of Caisson started sandbox ${sandbox}.`));
  expect(events.at(-1)).toMatchObject({ type: "run.ended", data: { reason: "done", text: "All here." } });
}

describe.each(Object.entries(otherVersions))("a run in a live sandbox with a guest %s", (_name, change) => {
  test("continues on its files after the sandbox is restarted, and says so", async () => {
    const model = await cli.script(script);
    const going = cli.start(["run", "upgrade", "--allow-root", "--repo", await cli.folder(), "--model", model, "--json"]);
    await going.event("tool.streamed");
    going.child.kill("SIGKILL");
    const { events } = await going.ended;
    const [run, sandbox] = [idOf(events), sandboxOf(events)];
    await using _older = await pretendOtherGuest(join(cli.home(), "sandboxes", sandbox), change);
    const resumed = await cli.run(["resume", run]);
    expect(resumed.code, resumed.text + resumed.stderr).toBe(0);
    expect(resumed.stderr).toContain(`Another version of Caisson started sandbox ${sandbox}.`);
    expect(resumed.text).toContain(`sandbox ${sandbox} (oci, restarted)`);
    expectRestarted(await cli.events(run), sandbox);
  });
});

test("a new station that adopts a run restarts its sandbox on its files", async () => {
  const home = join(cli.base(), "upgraded");
  await mkdir(home, { mode: 0o700 });
  const serve = async () => {
    const station = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
    await station.output(/"pid"/);
    return station;
  };
  const model = await cli.script(script);
  const old = await serve();
  const watching = cli.start(["run", "upgrade", "--allow-root", "--repo", await cli.folder(), "--model", model, "--json"], { home });
  const run = (await watching.event("run.created")).data.run;
  const { sandbox } = (await watching.event("run.sandboxed")).data;
  await watching.event("tool.streamed");
  old.child.kill("SIGKILL");
  await old.ended;
  await using _older = await pretendOtherGuest(join(home, "sandboxes", sandbox), otherVersions["that cannot fence"]);
  const upgraded = await serve();
  const ended = await watching.ended;
  expect(ended.code, ended.text.slice(-2000) + ended.stderr).toBe(0);
  expect(ended.stderr).toContain(`Another version of Caisson started sandbox ${sandbox}.`);
  expectRestarted(await cli.events(run, { home }), sandbox);
  upgraded.child.kill("SIGTERM");
  expect((await upgraded.ended).code).toBe(0);
  expect(cli.sandboxes(home)).toEqual([]);
});
