import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { SpecView } from "../../src/contract/spec/spec-verbs.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const example = join(import.meta.dirname, "..", "..", "examples", "spec");
const long = { timeout: 600_000 };
let project = "";
beforeAll(async () => {
  project = join(cli.base(), "project");
  await cp(join(example, "project"), project, { recursive: true });
});

async function ok(argv: readonly string[]): Promise<string> {
  const { code, text, stderr } = await cli.run(argv, { cwd: project });
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return text;
}
async function refused(argv: readonly string[], exitCode = 125): Promise<string> {
  const { code, text, stderr } = await cli.run(argv, { cwd: project });
  expect([code, stderr], `${argv.join(" ")}: ${text}`).toEqual([exitCode, expect.any(String)]);
  return stderr;
}
const show = async (spec: string) => JSON.parse(await ok(["spec", "show", spec, "--json"])) as SpecView;
const listed = async () => (JSON.parse(await ok(["spec", "ls", "--json"])) as SpecView[]).map(({ spec }) => spec);
const file = async (text: string) => join(await cli.folder({ "phase.json": text }), "phase.json");

test("commands plan, reject, approve, compare, export, edit and remove a spec", long, async () => {
  const model = `scripted:${join(example, "script.yaml")}`;
  const command = ["spec", "new", "Count words and lines, too", "--name", "words", "--model", model, "--runtime", "oci"];
  const spec = (await ok(command)).trim();
  expect(spec).toMatch(/^spec_[a-z2-7]{12}$/);
  expect(await refused(["spec", "approve", "words"])).toContain("is not waiting for approval");
  expect(await refused(["spec", "run", "words", "--from", "design"])).toContain("explore is not written yet");
  expect(await ok(["spec", "run", "words", "--plan"])).toContain("caisson spec approve");
  expect(await show("words")).toMatchObject({ status: "waiting", asked: { phase: "requirements", version: 3 } });

  // The next attempt gets a person's comment, and a person only approves the version that they saw.
  expect(await ok(["spec", "reject", "words", "say", "what", "a", "line", "is"])).toContain("rewritten");
  await ok(["spec", "run", "words", "--plan"]);
  const again = await show("words");
  expect(again).toMatchObject({ status: "waiting", asked: { phase: "requirements", version: 4 } });
  expect(again.decisions).toMatchObject([{ phase: "requirements", version: 3, approved: false, text: "say what a line is" }]);
  expect(await refused(["spec", "approve", "words", "--version", "3"])).toContain("is version 4, not 3");
  await ok(["spec", "approve", "words", "--version", "4"]);
  await ok(["spec", "run", "words", "--plan"]);
  await ok(["spec", "approve", spec.slice(0, 10), "--phase", "design"]);
  await ok(["spec", "run", "words", "--plan"]);
  const planned = await show("words");
  expect(planned).toMatchObject({ status: "planned", session: null });

  expect(await ok(["spec", "export", "words"])).toMatch(/REQ-001[\s\S]*TASK-001/);
  expect(await ok(["spec", "export", "words", "--version", "2"])).not.toContain("REQ-001");
  const exported = JSON.parse(await ok(["spec", "export", "words", "--format", "json"])) as {
    spec: string;
    requirements: { requirements: { id: string }[] };
  };
  expect(exported.spec).toBe(spec);
  const newRequirements = { requirements: exported.requirements.requirements.slice(0, 1) };
  expect(await refused(["spec", "edit", "words", "requirements", await file("nonsense")])).toContain("is not JSON");
  expect(await refused(["spec", "edit", "words", "requirements", await file('{"requirements": 7}')])).toContain(
    "does not match the schema of requirements",
  );
  expect(await ok(["spec", "edit", "words", "requirements", await file(JSON.stringify(newRequirements))])).toContain(
    `requirements is now version ${planned.version + 1}, by you`,
  );
  expect(await ok(["spec", "diff", "words"])).toMatch(/^-### REQ-002/m);
  expect(await refused(["spec", "diff", "words", "--to", "99"])).toContain("has no version 99");

  expect(await listed()).toContain(spec);
  expect(await ok(["spec", "rm", "words"])).toContain(spec);
  expect(await listed()).not.toContain(spec);
  expect(await refused(["spec", "show", "words"])).toContain("words");
  expect(cli.sandboxes()).toEqual([]);
});

test("a phase fails after three invalid attempts, and resume tries again", long, async () => {
  const model = await cli.script({
    about: "a scripted model that has nothing to say",
    turns: [{ say: "I am a scripted model, and done." }],
  });
  const spec = (await ok(["spec", "new", "Count words", "--name", "nonsense", "--model", model, "--runtime", "oci"])).trim();
  const attempts = async () => (await show(spec)).attempts.map(({ phase, judgement }) => `${phase} ${judgement?.passed}`);
  await refused(["spec", "run", "nonsense"], 1);
  expect(await attempts()).toEqual(Array(3).fill("explore false"));
  expect(await show(spec)).toMatchObject({
    status: "failed",
    phase: "explore",
    version: 0,
    ended: { text: expect.stringContaining("explore") },
  });
  await refused(["spec", "resume", "nonsense"], 1);
  expect(await attempts()).toEqual(Array(6).fill("explore false"));
  expect(await refused(["spec", "cancel", "nonsense"])).toContain("has ended");
  const draft = (await ok(["spec", "new", "Count lines", "--name", "lines"])).trim();
  expect(await ok(["spec", "cancel", "lines"])).toContain(`${draft} was cancelled`);
  await ok(["spec", "rm", "lines", "nonsense"]);
  const left = await listed();
  for (const each of [spec, draft]) expect(left).not.toContain(each);
  expect(cli.sandboxes()).toEqual([]);
});

test("circular tasks are refused before any of them starts", long, async () => {
  const script = await readFile(join(example, "script.yaml"), "utf8");
  const [first, second] = ["TASK-002", "TASK-001"].map((id) => `"dependsOn": ["${id}"]`);
  const circular = script.replace('"dependsOn": []', first ?? "").replace('"dependsOn": []', second ?? "");
  const model = `scripted:${join(await cli.folder({ "script.yaml": circular }), "script.yaml")}`;
  const command = ["spec", "new", "Count words and lines, too", "--name", "circle", "--gate", "none", "--model", model, "--runtime", "oci"];
  const spec = (await ok(command)).trim();
  await refused(["spec", "run", "circle"], 1);
  const failed = await show("circle");
  expect(failed).toMatchObject({ status: "failed", phase: "tasks", session: null });
  const attempts = failed.attempts.filter(({ phase }) => phase === "tasks");
  expect(attempts.map(({ judgement }) => judgement?.passed)).toEqual([false, false, false]);
  const circle = "tasks wait for each other: TASK-001 → TASK-002 → TASK-001";
  expect(JSON.stringify(attempts[0]?.judgement)).toContain(circle);

  const tasks = /Spec phase: tasks[\s\S]*?```json\n([\s\S]*?)```/.exec(circular)?.[1] ?? "";
  expect(await refused(["spec", "edit", "circle", "tasks", await file(tasks)])).toContain(circle);
  expect((await show("circle")).seq).toBe(failed.seq);
  expect(await ok(["spec", "rm", "circle"])).toContain(spec);
  expect(cli.sandboxes()).toEqual([]);
});
