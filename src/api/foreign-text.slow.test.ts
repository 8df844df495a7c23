import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";

const { station, token, ask, post, base, defects } = useServer();

/** `*a*a*a…*b`: a backtracking matcher never finishes on this. */
const stars = `${"*a".repeat(40)}*b`;

/** Returns a model that makes these calls and finishes. */
async function model(calls: readonly { tool: string; arguments: object }[] = []): Promise<string> {
  const file = join(base(), "model.json");
  await writeFile(file, JSON.stringify({ turns: [...(calls.length > 0 ? [{ calls }] : []), { say: "Done." }] }));
  return `scripted:${file}`;
}

test("a file-hiding pattern with many stars does not block the station", async () => {
  const as = await token("run", { owner: "ada" });
  await mkdir(join(base(), "sent"));
  await writeFile(join(base(), "sent", "a".repeat(200)), "");
  const { id: upload } = await ownedStation(station(), { owner: "ada", sees: "own" }).uploads.put(packFolder(join(base(), "sent")));
  const settings = { uploadedMounts: [{ upload, target: "/data", access: "ro" as const }], mountGuard: { hide: [stars] } };
  const { run } = await station().runs.start({ task: "x", model: await model(), settings }, { owner: "ada" });
  expect((await ask("/healthz", { as })).status).toBe(200);
  // The folder was searched. The run fails afterwards, because this runtime has no mounts.
  expect(await station().runs.wait(run)).toMatchObject({ finish: "error" });
  expect(defects).toEqual([]);
});

test("a model's glob with many stars does not block the station", async () => {
  const calls = [
    { tool: "write", arguments: { path: "a".repeat(200), content: "x" } },
    { tool: "glob", arguments: { pattern: stars } },
    { tool: "glob", arguments: { pattern: "{a,b}".repeat(40) } },
  ];
  const { run } = await station().runs.start({ task: "x", model: await model(calls) });
  expect(await station().runs.wait(run)).toMatchObject({ finish: "done" });
});

test("a long .gitignore line does not block the station during a diff", async () => {
  const as = await token("read");
  const folder = join(base(), "project");
  await mkdir(folder);
  await writeFile(join(folder, ".gitignore"), `${" ".repeat(400_000)}x\n${"\\ ".repeat(200_000)}x\n*.log\n`);
  const calls = ["a.txt", "b.log"].map((path) => ({ tool: "write", arguments: { path, content: "x" } }));
  const source = { kind: "folder" as const, path: folder };
  const { run } = await station().runs.start({ task: "x", model: await model(calls), source });
  const { session } = await station().runs.wait(run);
  const answer = await ask(`/v1/sessions/${session}/diff`, { as });
  const text = await answer.text();
  expect([answer.status, text.includes("a.txt"), text.includes("b.log")]).toEqual([200, true, false]);
});

test.each([
  ["nested loops", "input.l.all(a, input.l.all(b, input.l.all(c, input.l.all(d, a >= 0))))", "too_large"],
  ["a regular expression that backtracks", 'input.s.matches("^(a+)+$")', null],
])("an expression with %s does not block the station", async (_, when, code) => {
  const as = await token("run", { owner: "ada" });
  const input = { l: Array.from({ length: 900 }, (_unused, index) => index), s: `${"a".repeat(100)}!` };
  const definition = { name: "x", steps: [{ name: "a", kind: "set", when, data: { x: 1 } }] };
  const started = await post("/v1/workflows", { definition, input }, { as });
  const { id } = (await started.json()) as { id: string };
  expect((await ask("/healthz", { as })).status).toBe(200);
  const ended = (await (await ask(`/v1/workflows/${id}/wait`, { as })).json()) as {
    finish: string;
    steps: { error: { code: string } | null }[];
  };
  expect([ended.finish, ended.steps[0]?.error?.code ?? null]).toEqual([code === null ? "completed" : "failed", code]);
  expect(defects).toEqual([]);
});
