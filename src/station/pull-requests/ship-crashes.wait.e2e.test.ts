import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ForgeRepository, makeForgeRepository } from "../../../test/support/forge-repository.ts";
import { startForgeServer } from "../../../test/support/forge-server.ts";
import { Crash, makeShipRig, type ShipRig } from "./testing-pull-requests.ts";

const TOKEN = "canary-token-0123456789";
const files = { "a.txt": "one\n", "b.txt": "b\n" };
/** For each step we crash after its intent, its effect and its outcome, and once at the end. */
const STEPS = ["commit", "push", "request", "check", "merge", "remove_branch"];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-ship-crash-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Crashes at the given point, then checks that a new process continues and ends as if there had been no crash. */
async function sailTwice(rig: ShipRig, crashAt: number): Promise<void> {
  await expect(rig.sail({ crashAt })).rejects.toThrow(Crash);
  await rig.sail();
}

function expectMerged(rig: ShipRig, repository: ForgeRepository): void {
  expect(rig.state()).toMatchObject({ failure: null, ended: "completed" });
  expect(repository.branches()).toEqual(["main"]);
  expect(repository.file("main", "a.txt")).toBe("two");
  expect(rig.events.filter(({ type }) => type === "ship.merged")).toHaveLength(1);
  // Exactly one merge of one commit, after the first commit.
  expect(repository.git("rev-list", "--count", "main")).toBe("3");
  expect(repository.git("for-each-ref", "--format=%(refname)", "refs/merge-requests")).toBe("");
  repository.git("fsck", "--full", "--strict");
}

const points = STEPS.flatMap((step) => ["intent", "effect", "outcome"].map((at) => `the ${at} of ${step}`)).map((name, crashAt) => ({
  name,
  crashAt,
}));

describe.each(["gitea", "github"] as const)("a ship to %s whose process crashes", (kind) => {
  // The second forge gets only the points that matter most: done, but not recorded.
  const some = points.filter(({ name }) => kind === "gitea" || name.includes("effect"));
  test.each(some)("after $name ends as without the crash", async ({ crashAt }) => {
    await using server = await startForgeServer({ kind, folder: join(folder, `${kind}-${crashAt}`), token: TOKEN, files });
    const { repository, pulls } = server;
    const target = { forge: kind, remote: server.remote, token: "TOKEN", allowPrivate: true };
    using rig = await makeShipRig({ target, repository, token: TOKEN });
    await sailTwice(rig, crashAt);
    expectMerged(rig, repository);
    expect(pulls.all()).toHaveLength(1);
    expect(pulls.all()[0]).toMatchObject({ state: "closed", mergedAt: expect.any(String) });
  });
});

describe("a ship to a bare repository whose process crashes", () => {
  test.each(points)("after $name ends as without the crash", async ({ crashAt }) => {
    const repository = makeForgeRepository(join(folder, `bare-${crashAt}`), "project", files);
    repository.git("pack-refs", "--all");
    using rig = await makeShipRig({ target: { forge: "git", remote: repository.path, token: null, allowPrivate: false }, repository });
    await sailTwice(rig, crashAt);
    expectMerged(rig, repository);
  });
});
