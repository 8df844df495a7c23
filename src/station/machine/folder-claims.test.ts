import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { runAttacks } from "../../suites/attack/run-attacks.ts";
import { folderClaims } from "./folder-claims.ts";

const more = folderClaims({ path: process.env.PATH ?? "" });
const judge = (id: string, seen: unknown) => more.find((claim) => claim.id === id)?.judge(seen, {} as never) ?? [];

test("the claims that need no real sandbox hold", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-claims-"));
  try {
    await using runtime = createFakeRuntime();
    const only = ["H30", "H32"];
    const { verdicts } = await runAttacks(runtime, { version: "test", stateDir, probePath: "", only, more });
    expect(verdicts.map(({ id, verdict, seen }) => [id, verdict, seen])).toEqual([
      ["H30", "observed", expect.stringContaining("coder: no rights, agents/coder.prompt: denied")],
      ["H32", "observed", expect.stringContaining('"another host":"denied"')],
    ]);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});

test("a granted right, a command that ran, or no attempt at all breaks a claim", () => {
  for (const id of ["H30", "H31"]) {
    expect(judge(id, { answers: { coder: [], net: "denied" }, left: [] })).toEqual([]);
    expect(judge(id, { answers: { coder: ["be root inside the sandbox"] }, left: [] })).toEqual(["coder may be root inside the sandbox"]);
    expect(judge(id, { answers: { coder: [] }, left: ["coder"] })).toHaveLength(1);
    expect(judge(id, { answers: {}, left: [] })).toHaveLength(1);
  }
  expect(judge("H32", { answers: { "its own host": "fetched", "another host": "denied" } })).toEqual([]);
  expect(judge("H32", { answers: { "its own host": "fetched", "another host": "fetched" } })).toHaveLength(1);
  expect(judge("H32", { answers: { "its own host": "denied" } })).toHaveLength(1);
});
