// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WorkflowView } from "../../src/contract/workflow/workflow-verbs.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const long = { timeout: 600_000 };

async function ok(argv: readonly string[]): Promise<string> {
  const { code, text, stderr } = await cli.run(argv);
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return text;
}
const show = async (id: string) => JSON.parse(await ok(["workflow", "show", id, "--json"])) as WorkflowView;
const all = async () => JSON.parse(await ok(["workflow", "ls", "--all", "--json"])) as WorkflowView[];
async function refused(argv: readonly string[]): Promise<string> {
  const { code, text, stderr } = await cli.run(argv);
  expect(code, `${argv.join(" ")}: ${text}`).not.toBe(0);
  return stderr;
}
async function definition(value: object): Promise<string> {
  return join(await cli.folder({ "workflow.json": JSON.stringify(value) }), "workflow.json");
}

const greeting = {
  name: "greeting",
  steps: [{ name: "say", kind: "set", data: { said: "${'hello ' + input.name}" } }],
  output: { said: "${data.said}" },
};
/** A workflow with a step of every kind that needs no agent. */
const rich = {
  name: "rich",
  input: { type: "object", required: ["names"], properties: { names: { type: "array", items: { type: "string" } } } },
  steps: [
    {
      name: "pick",
      kind: "switch",
      cases: [{ when: "size(input.names) > 1", steps: [{ name: "many", kind: "set", data: { size: "many" } }] }],
      default: [{ name: "few", kind: "set", data: { size: "few" } }],
    },
    {
      name: "race",
      kind: "parallel",
      join: "any",
      branches: {
        quick: [{ name: "won", kind: "set", data: { won: true } }],
        never: [{ name: "hang", kind: "signal", signal: "never" }],
      },
    },
    {
      name: "each",
      kind: "foreach",
      in: "input.names",
      concurrency: 2,
      steps: [{ name: "greet", kind: "workflow", input: { name: "${item}" }, definition: greeting }],
    },
    {
      name: "guard",
      kind: "try",
      steps: [{ name: "bad", kind: "command", argv: ["sh", "-c", "exit 3"], retry: { attempts: 2, backoff: "10ms" } }],
      catch: [{ name: "sorry", kind: "set", data: { caught: "${error.code}" } }],
      finally: [{ name: "tidy", kind: "set", data: { tidied: true } }],
    },
    { name: "nap", kind: "timer", for: "10ms" },
    { name: "hear", kind: "signal", signal: "deployed" },
    { name: "ask", kind: "approval", text: "May version ${string(steps.hear.output.version)} stay?" },
  ],
  output: {
    size: "${data.size}",
    won: "${data.won}",
    each: "${steps.each.output.map(e, e.output.said)}",
    caught: "${data.caught}",
    tidied: "${data.tidied}",
    version: "${steps.hear.output.version}",
    by: "${steps.ask.output.text}",
  },
};

test("other processes pause, signal, resume, approve and remove a workflow", long, async () => {
  const going = cli.start(["workflow", "run", await definition(rich), "--input", 'names=["Ana","Bo"]', "--json"]);
  const waits = async () => (await all()).find(({ title }) => title === "rich")?.waits?.signal ?? null;
  await expect.poll(waits, { timeout: 300_000 }).toBe("deployed");
  const id = (await all()).find(({ title }) => title === "rich")?.id ?? "";
  expect(await refused(["workflow", "approve", id])).toContain(`no step of ${id} is waiting for an answer`);
  await ok(["workflow", "pause", id.slice(0, 10), "--text", "lunch"]);
  // A signal that arrives during the pause is stored. A second one with the same key has no effect.
  for (const version of [7, 8]) await ok(["workflow", "signal", id, "deployed", "--data", `{"version": ${version}}`, "--key", "one"]);
  const paused = await show(id);
  expect(paused).toMatchObject({ status: "paused", paused: { text: "lunch" } });
  expect(paused.steps.find(({ path }) => path === "hear")).toMatchObject({ status: "running" });
  expect(await refused(["workflow", "rm", id])).toMatch(
    new RegExp(`the workflow ${id} has not ended[\\s\\S]*caisson workflow cancel ${id}`),
  );
  expect((await show(id)).seq).toBe(paused.seq);

  const resumed = cli.start(["workflow", "resume", id, "--json"]);
  await expect.poll(async () => (await show(id)).waits?.person ?? null, { timeout: 120_000 }).toBe("May version 7 stay?");
  await ok(["workflow", "approve", id, "--text", "it may"]);
  for (const command of [going, resumed]) {
    const { code, text, stderr } = await command.ended;
    expect([code, JSON.parse(text.trim().split("\n").at(-1) ?? "")], stderr).toMatchObject([0, { id, finish: "completed" }]);
  }
  const ended = await show(id);
  expect(ended.output).toEqual({
    size: "many",
    won: true,
    each: ["hello Ana", "hello Bo"],
    caught: "exit",
    tidied: true,
    version: 7,
    by: "it may",
  });
  expect(ended.steps.find(({ path }) => path === "guard/try/bad")).toMatchObject({ attempt: 2, status: "failed" });
  expect(await refused(["workflow", "pause", id])).toContain("has ended");
  expect(cli.sandboxes()).toEqual([]);

  expect((await all()).map(({ title }) => title).sort()).toEqual(["greeting", "greeting", "rich"]);
  expect(await ok(["workflow", "rm", id])).toBe(`${id}\n`);
  expect(await all()).toEqual([]);
  expect(await refused(["workflow", "rm", id])).toContain(`there is no workflow ${id}`);
});

test("an edited definition does not change a started instance, even after a kill", long, async () => {
  const createGreeter = (text: string) => ({
    name: "greeter",
    steps: [
      { name: "hear", kind: "signal", signal: "go" },
      { name: "say", kind: "command", argv: ["echo", text] },
    ],
    output: { said: "${steps.say.output.stdout}" },
  });
  const file = await definition(createGreeter("as it was"));
  const going = cli.start(["workflow", "run", file, "--json"]);
  const instance = async () => (await all()).find(({ title, waits }) => title === "greeter" && waits?.signal === "go")?.id ?? null;
  await expect.poll(instance, { timeout: 120_000 }).not.toBeNull();
  const id = (await instance()) ?? "";
  await writeFile(file, JSON.stringify(createGreeter("as it is now")));
  going.child.kill("SIGKILL");
  await going.ended;
  await ok(["workflow", "signal", id, "go"]);
  // A station resumes the workflow without a command.
  if (stationMode === "none") await ok(["workflow", "resume", id]);
  await expect.poll(async () => (await show(id)).finish, { timeout: 120_000 }).toBe("completed");
  expect((await show(id)).output).toEqual({ said: "as it was\n" });
  await ok(["workflow", "rm", id]);
});

test("a step that exceeds its timeout is ended inside, and its failure can be caught", long, async () => {
  const file = await definition({
    name: "slow",
    steps: [
      {
        name: "guard",
        kind: "try",
        steps: [{ name: "hang", kind: "command", argv: ["sleep", "3600"], timeout: "2s" }],
        catch: [{ name: "note", kind: "set", data: { caught: "${error.code}" } }],
      },
      { name: "wait", kind: "signal", signal: "never", timeout: "1s" },
    ],
  });
  const { code, text, stderr } = await cli.run(["workflow", "run", file, "--json"]);
  expect([code, JSON.parse(text.trim().split("\n").at(-1) ?? "")], stderr).toMatchObject([1, { finish: "failed" }]);
  const [ended] = (await all()).filter(({ title }) => title === "slow");
  expect(await show(ended?.id ?? "")).toMatchObject({
    data: { caught: "timeout" },
    steps: expect.arrayContaining([expect.objectContaining({ path: "wait", status: "failed" })]),
  });
  await ok(["workflow", "rm", ended?.id ?? ""]);
  expect(cli.sandboxes()).toEqual([]);
});

test("invalid definitions and inputs are refused with their place and a hint", long, async () => {
  const step = (more: object) => ({ name: "x", steps: [{ name: "a", ...more }] });
  const inItself = step({ kind: "workflow", definition: step({ kind: "fail", text: "x" }) });
  const bad: [object, string, string][] = [
    [step({ kind: "agnet" }), "steps.0.kind", "Did you mean agent?"],
    [step({ kind: "set", when: "1 +", data: { x: 1 } }), "steps.0.when", "Write expressions in CEL"],
    [inItself, "steps.0.definition.name", "A workflow within"],
    [step({ kind: "merge", of: ["later"] }), "steps.0.of.0", ""],
  ];
  for (const [value, place, hint] of bad) {
    const file = await definition(value);
    const checked = await cli.run(["workflow", "validate", file]);
    expect([checked.code, checked.text]).toEqual([1, expect.stringContaining(place)]);
    expect(checked.text).toContain(hint);
    const refusal = await refused(["workflow", "run", file]);
    expect(refusal).toContain(place);
    expect(refusal).toContain(hint);
  }
  const huge = await definition(step({ kind: "set", data: { text: "x".repeat(10_000_000) } }));
  for (const verb of ["validate", "run"]) expect(await refused(["workflow", verb, huge])).toContain("is larger than 1048576 bytes");
  const rightful = await definition(rich);
  const run = (...more: string[]) => refused(["workflow", "run", rightful, ...more]);
  expect(await run()).toContain("names");
  expect(await run("--input", "names=[7]")).toMatch(/names[\s\S]*string/);
  const word = "x".repeat(100_000);
  expect(await run("--input", "names=[]", ...["a", "b", "c"].flatMap((name) => ["--input", `${name}=${word}`]))).toMatch(
    /the input has \d+ bytes; at most/,
  );
  expect(await run("--input", "names=[]", "--cron", "61 * * * *")).toContain("is not a schedule");
  expect(await all()).toEqual([]);
});
