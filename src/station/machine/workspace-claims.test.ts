import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { runAttacks } from "../../suites/attack/run-attacks.ts";
import { workspaceClaims } from "./workspace-claims.ts";

const more = workspaceClaims({ path: process.env.PATH ?? "" });
const ids = more.map((claim) => claim.id);
const judge = (id: string, seen: unknown) => more.find((claim) => claim.id === id)?.judge(seen, {} as never) ?? [];

test("the claims hold with any runtime", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-claims-"));
  try {
    await using runtime = createFakeRuntime();
    const { verdicts } = await runAttacks(runtime, { version: "test", stateDir, probePath: "", only: ids, more });
    expect(verdicts.map(({ id, verdict, seen }) => [id, verdict, seen])).toEqual([
      ["H40", "observed", "change: applied"],
      ["H41", "observed", "both at once: unsafe, the second alone: unsafe, through the user's own link: unsafe"],
      ["H42", "observed", "HEAD: applied, config: applied, objects/k: applied, refs/k: left out"],
      ["H43", "observed", "with nothing missing: applied, with a commit to fetch: not_found"],
    ]);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});

test("a file left outside, an applied escape, or no attempt at all breaks a claim", () => {
  for (const id of ids) {
    expect(judge(id, { answers: { change: "applied" }, left: ["secret (changed)"] })).not.toEqual([]);
    expect(judge(id, { answers: {}, left: [] })).not.toEqual([]);
  }
  expect(judge("H40", { answers: { change: "conflict" }, left: [] })).toHaveLength(1);
  expect(judge("H41", { answers: { both: "unsafe", second: "applied" }, left: [] })).toEqual(["second was applied"]);
  expect(judge("H42", { answers: { HEAD: "applied" }, left: ["a repository in sub"] })).toHaveLength(1);
});
