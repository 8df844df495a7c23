import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

interface Place {
  cwd: string;
}
const ok = async (argv: readonly string[], place: Place) => {
  const result = await cli.run(argv, place);
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};
const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
/** Lists what the agent changes in all parts of the machine. */
const look = "cat notes ~/.config /etc/caisson-test; ls /usr/local/bin/tool; ls /usr/lib/python3 | wc -l; ls -d /usr/share/doc*; ls";

const script = {
  turns: [
    bash("echo notes > notes; echo mine > ~/.config; echo set | sudo tee /etc/caisson-test; sudo touch /usr/local/bin/tool"),
    bash(look),
    bash("rm notes a.txt ~/.config; sudo rm -rf /usr/lib/python3 /etc/caisson-test; sudo mv /usr/share/doc /usr/share/docs-moved; mkdir x"),
    { say: "Broken." },
  ],
  tasks: [{ contains: ["look again"], turns: [bash(look), { say: "Seen." }] }],
};

/** Returns what `look` printed last in a run. */
async function seen(run: string, place: Place): Promise<string> {
  const { text } = await ok(["logs", run, "--json"], place);
  const events = text
    .trimEnd()
    .split("\n")
    .map((row) => JSON.parse(row) as { type: string; data: { text?: string } });
  return events.findLast(({ type, data }) => type === "tool.ended" && data.text?.includes("notes") === true)?.data.text ?? "";
}

test.each([
  { where: "on the machine's disk", limit: [] },
  { where: "on its own disk", limit: ["--disk", "256m"] },
])("takes the whole machine back after root broke it, and forks it at any step ($where)", { timeout: 240_000 }, async ({ limit }) => {
  const place = { cwd: await cli.folder({ "a.txt": "zero\n" }) };
  const model = await cli.script(script);
  const { events } = await ok(["run", "break it", "--json", "--model", model, "--runtime", "oci", "--allow-root", ...limit], place);
  const created = events[0];
  const run = created?.type === "run.created" ? created.data.run : "";
  const before = await seen(run, place);
  expect(before).toContain("/usr/local/bin/tool");
  const ended = events.flatMap((event) => (event.type === "step.ended" ? [event.data] : []));
  expect(ended.map(({ hasChanged }) => hasChanged)).toEqual([true, false, true, false]);
  expect(ended.map(({ problem }) => problem)).toEqual([undefined, undefined, undefined, undefined]);
  const copy = limit.length === 0 ? "copy" : "copy-on-disk";
  await ok(["session", "fork", `${run}@2`, "--name", copy], place);
  await ok(["rewind", run, "--to", "2"], place);
  for (const session of [copy, run]) {
    const again = ["run", "look again", "--json", "--session", session, "--model", model, "--runtime", "oci", "--allow-root"];
    const { events } = await ok(
      session === run ? ["run", "look again", "--from", `${run}@2`, ...again.slice(2, 3), ...again.slice(5)] : again,
      place,
    );
    const first = events[0];
    expect(await seen(first?.type === "run.created" ? first.data.run : "", place)).toBe(before);
  }
  expect((await ok(["show", `${run}@1`, "notes"], place)).text).toBe("notes\n");
  const timeline = JSON.parse((await ok(["timeline", run, "--json"], place)).text);
  expect(timeline).toMatchObject({
    steps: [
      { step: 1, isStored: true },
      { step: 2, files: 0 },
    ],
    forks: [{ from: { run, step: 4 } }],
  });
  const tail = timeline.forks[0].run;
  const between = await ok(["diff", tail, "--from", "2", "--to", "3", "--stat", "--json"], place);
  expect(JSON.parse(between.text).files.map(({ path, kind }: { path: string; kind: string }) => `${kind} ${path}`)).toEqual([
    "removed a.txt",
    "removed notes",
  ]);
});
