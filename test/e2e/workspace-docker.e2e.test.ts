import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Docker from "dockerode";
import { beforeAll, describe, expect, test } from "vitest";
import { useDockerEngine } from "../support/docker-engine.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

/** The engine stores no layer for us: a session's files are a snapshot, and a diff compares all of them. */
describe("a session in the docker runtime", () => {
  let env: Record<string, string> = {};
  const docker = () => new Docker({ socketPath: env.DOCKER_HOST?.replace("unix://", "") ?? "" });
  beforeAll(async () => {
    const engine = await useDockerEngine();
    env = { DOCKER_HOST: `unix://${engine.socketPath}`, CAISSON_DOCKER_IMAGE: await engine.image("busybox") };
  });

  test("keeps its files for the next run, and the user's edits are not its changes", async () => {
    const folder = await cli.folder({ a: "1\n", b: "2\n", c: "3\n", ".env": "TOKEN=1\n" });
    const work = async (command: string, ...argv: string[]) => {
      const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] });
      return await cli.run(["run", "do it", "--model", model, "--session", "boxed", ...argv], { cwd: folder, env });
    };
    const ok = async (...argv: string[]) => {
      const result = await cli.run(argv, { cwd: folder, env });
      expect(result.code, result.stderr).toBe(0);
      return result;
    };
    const first = await work("echo agent >> a; echo agent >> b; cat .env > n; echo n >> n", "--runtime", "docker");
    expect(first.code, first.stderr + first.text).toBe(0);
    writeFileSync(join(folder, "b"), "2\nmine\n");
    writeFileSync(join(folder, "c"), "3\nmine\n");
    const second = await work("cat n && echo second >> a; echo mine > .env");
    expect(second.code, second.stderr + second.text).toBe(0);
    const { files } = JSON.parse((await ok("diff", "boxed", "--json")).text) as { files: { path: string; changedOutside: boolean }[] };
    expect(files.map(({ path, changedOutside }) => [path, changedOutside])).toEqual([
      ["a", false],
      ["b", true],
      ["n", false],
    ]);
    expect((await cli.run(["apply", "boxed"], { cwd: folder, env })).code).toBe(125);
    await ok("apply", "boxed", "a", "n");
    expect(readFileSync(join(folder, "a"), "utf8")).toBe("1\nagent\nsecond\n");
    // The credential is hidden inside, and what replaces it there is not a change.
    expect([readFileSync(join(folder, "n"), "utf8"), readFileSync(join(folder, ".env"), "utf8")]).toEqual(["n\n", "TOKEN=1\n"]);
    const elsewhere = await work("true", "--runtime", "oci");
    expect([elsewhere.code, elsewhere.stderr]).toEqual([125, expect.stringContaining("in the runtime docker, not in oci")]);
    const run = /run_[a-z0-9]+/.exec(elsewhere.text)?.[0];
    if (run !== undefined) await cli.run(["stop", run], { cwd: folder, env });
    await ok("session", "rm", "boxed", "--yes");
    expect((await ok("snapshot", "ls", "--json")).text).not.toContain("boxed");
  });

  test("takes the whole machine back to a step, and forks it there", { timeout: 240_000 }, async () => {
    const folder = await cli.folder({ "a.txt": "zero\n" });
    const ok = async (...argv: string[]) => {
      const result = await cli.run(argv, { cwd: folder, env });
      expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
      return result;
    };
    const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
    const look = "cat notes ~/.config /etc/caisson-test; ls /usr/local/tool; ls -d /bin/vi /var/spool; ls";
    const model = await cli.script({
      turns: [
        bash(
          "echo notes > notes; echo mine > ~/.config; echo set | sudo tee /etc/caisson-test; sudo mkdir -p /usr/local; sudo touch /usr/local/tool",
        ),
        bash(look),
        bash("rm notes a.txt ~/.config; sudo rm -rf /var/spool /usr/local /etc/caisson-test; sudo rm /bin/vi; mkdir x; touch x/y"),
        { say: "Broken." },
      ],
      tasks: [{ contains: ["look again"], turns: [bash(look), { say: "Seen." }] }],
    });
    const how = ["--json", "--model", model, "--runtime", "docker", "--allow-root"];
    const { events } = await ok("run", "break it", ...how);
    const created = events[0];
    const run = created?.type === "run.created" ? created.data.run : "";
    const seenIn = async (id: string) => {
      const rows = (await ok("logs", id, "--json")).text.trimEnd().split("\n");
      const texts = rows.map((row) => JSON.parse(row) as { type: string; data: { text?: string } });
      return texts.findLast(({ type, data }) => type === "tool.ended" && data.text?.includes("notes") === true)?.data.text ?? "";
    };
    const before = await seenIn(run);
    expect(before).toContain("/usr/local/tool");
    const ended = events.flatMap((event) => (event.type === "step.ended" ? [event.data] : []));
    expect(ended.map(({ hasChanged, problem }) => [hasChanged, problem])).toEqual([
      [true, undefined],
      [false, undefined],
      [true, undefined],
      [false, undefined],
    ]);
    expect(ended[0]).toMatchObject({ files: expect.any(Number), bytes: expect.any(Number) });
    expect((await ok("show", `${run}@1`, "notes")).text).toBe("notes\n");
    const between = JSON.parse((await ok("diff", run, "--from", "2", "--to", "3", "--stat", "--json")).text);
    expect(between.files.map(({ path, kind }: { path: string; kind: string }) => `${kind} ${path}`)).toEqual([
      "removed a.txt",
      "removed notes",
      "added x/y",
    ]);
    const [fork] = /run_[a-z0-9]+/.exec((await ok("fork", `${run}@2`)).text.replaceAll(run, "")) ?? [];
    await ok("session", "fork", `${run}@2`, "--name", "copy");
    await ok("rewind", run, "--to", "2");
    const timeline = JSON.parse((await ok("timeline", run, "--json")).text);
    expect(timeline).toMatchObject({
      steps: [
        { step: 1, isStored: true },
        { step: 2, files: 0 },
      ],
    });
    const tail = timeline.forks.find(({ from }: { from: { step: number } }) => from.step === 4).run;
    // The copy outlives the run that it came from.
    expect((await ok("snapshot", "du", "--json")).text).toContain('"point"');
    const again = await ok("run", "look again", "--session", "copy", ...how);
    const first = again.events[0];
    expect(await seenIn(first?.type === "run.created" ? first.data.run : "")).toBe(before);
    expect(JSON.parse((await ok("diff", tail, "--stat", "--json")).text).files.length).toBe(2);
    // The copies outlive what they came from, and the files go with the last of them.
    const sessionOf = async (id: string) => {
      const rows = (await ok("logs", id, "--json")).text.trimEnd().split("\n");
      const events = rows.map((row) => JSON.parse(row) as { type: string; data: { session?: string } });
      return events.findLast(({ type }) => type === "run.forked" || type === "run.created")?.data.session ?? "";
    };
    for (const session of [await sessionOf(run), await sessionOf(tail), "copy"]) await ok("session", "rm", session, "--yes", "--force");
    expect((await ok("show", `${fork}@2`, "notes")).text).toBe("notes\n");
    const points = async () =>
      (await docker().listImages()).flatMap(({ RepoTags }) => (RepoTags ?? []).filter((tag) => tag.startsWith("caisson-point:")));
    expect((await points()).length).toBeGreaterThan(0);
    await ok("session", "rm", await sessionOf(fork ?? ""), "--yes", "--force");
    expect(await points()).toEqual([]);
  });

  test("has sandboxes that can be removed with their container if the record is damaged", async () => {
    const result = await cli.run(["sandbox", "create", "--no-workspace", "--runtime", "docker"], { env });
    const id = result.text.trim();
    const docker = new Docker({ socketPath: (env.DOCKER_HOST as string).replace("unix://", "") });
    const containers = async () => (await docker.listContainers({ all: true, filters: { name: [id] } })).length;
    expect(await containers()).toBe(1);
    writeFileSync(join(cli.home(), "sandboxes", id, "sandbox.json"), "{");
    const removed = await cli.run(["sandbox", "rm", id, "--yes"], { env });
    expect([removed.code, removed.stderr]).toEqual([0, ""]);
    expect(await containers()).toBe(0);
    expect(cli.sandboxes()).toEqual([]);
  });

  test("passes its files to a new container, or tells the agent that they are lost", {
    timeout: 90_000,
  }, async () => {
    const folder = await cli.folder({ "a.txt": "mine\n" });
    const bash = (command: string) => ({ tool: "bash", arguments: { command } });
    const model = await cli.script({
      turns: [
        { calls: [bash("echo kept > file.txt")] },
        { calls: [bash("echo up; sleep 60")] },
        { calls: [bash("cat file.txt")], expect: { news: ["on the same workspace"] } },
        { calls: [bash("echo more > more.txt; echo up again; sleep 60")], expect: { news: ["kept"] } },
        { calls: [bash("cat file.txt more.txt || echo nothing more")], expect: { news: ["are lost"] } },
        { say: "Told.", expect: { news: ["kept", "nothing more"], contains: ["are lost"] } },
      ],
    });
    const going = cli.start(["run", "survive", "--model", model, "--runtime", "docker", "--session", "mortal", "--json"], {
      cwd: folder,
      env,
    });
    const engine = new Docker({ socketPath: env.DOCKER_HOST?.replace("unix://", "") ?? "" });
    const containerOf = async (started: Promise<{ data: { sandbox: string } }>) =>
      engine.getContainer(`caisson-${(await started).data.sandbox}`);
    const first = await containerOf(going.event("run.sandboxed"));
    await going.event("tool.streamed");
    await first.kill();
    const second = await containerOf(going.event("run.sandboxed", (event) => event.data.why === "lost"));
    await going.event("tool.streamed", (event) => event.data.text.includes("up again"));
    await second.remove({ force: true });
    const done = await going.ended;
    expect(done.code, done.text.slice(-1500)).toBe(0);
    expect(done.events.flatMap((event) => (event.type === "run.sandboxed" ? [event.data.files] : []))).toEqual([undefined, "kept", "gone"]);
    const removal = await cli.run(["session", "rm", "mortal", "--yes"], { cwd: folder, env });
    expect(removal.code, removal.stderr).toBe(0);
    expect((await cli.run(["snapshot", "ls", "--json"], { env })).text).not.toContain("mortal");
  });
});
