import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  dangersIn,
  fingerprint,
  type HostileEntry,
  hostileEntry,
  hostilePath,
  hostileTarget,
  plant,
} from "../../test/support/hostile-trees.ts";
import { tries } from "../../test/support/thorough.ts";
import { CaissonError } from "../contract/error/error.ts";
import { applyChanges } from "./apply.ts";
import type { Change, FileSide } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { commitToBranch } from "./git/branch.ts";
import { readLower } from "./read-side.ts";
import { pairRenames } from "./renames.ts";
import { diffStat } from "./render-diff.ts";
import { leadsOut, linksOf, treeAsItIs } from "./resulting-tree.ts";
import { renderDiff } from "./testing-diff.ts";

/** Each test run has another seed: many short runs try more than one long run. */
const TIME_MS_MAX = 6_000;
const SEED = Number(process.env.CAISSON_TEST_SEED ?? Date.now() % 2 ** 31);

interface Wish {
  path: string;
  after: { kind: "file" | "link" | "none"; target: string; content: string };
}
const wish: fc.Arbitrary<Wish> = fc.record({
  path: hostilePath,
  after: fc.record({
    kind: fc.constantFrom("file", "file", "link", "link", "none"),
    target: hostileTarget,
    content: fc.constantFrom("x\n", "ref: refs/heads/main\n", "[core]\n\tfsmonitor = EVIL\n"),
  }),
});

/** Builds changes like a diff would: the old side is the existing file. */
async function changesOf(folder: string, wishes: readonly Wish[], fill: (text: string) => string): Promise<Change[]> {
  using tree = new FolderTree(folder);
  const changes = new Map<string, Change>();
  for (const { path, after } of wishes) {
    const before = await readLower(tree, path).catch(() => null);
    const content = Buffer.from(fill(after.kind === "link" ? after.target : after.content));
    const side: FileSide | null = after.kind === "none" ? null : { kind: after.kind, mode: after.kind === "link" ? 0o777 : 0o755, content };
    if (before !== null || side !== null) changes.set(path, { path, from: null, before, after: side, changedOutside: false });
  }
  return pairRenames([...changes.values()]);
}

/**
 * Returns the folder's own links that lead nowhere now, but outside once a missing part of their path exists. They were
 * there before and stay.
 */
function waysOutOnceThere(folder: string): string[] {
  using tree = new FolderTree(folder);
  const now = treeAsItIs(tree);
  return [...linksOf(tree)]
    .filter(({ path, target }) => leadsOut(now, path.split("/").slice(0, -1), target) !== null)
    .map(({ path, target }) => `link ${join(realpathSync(folder), path)} -> ${target.toString("utf8")}`);
}

/** Ignores refusals; any other failure is a defect. */
async function orRefused(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof CaissonError) || error.code === "internal") throw error;
  });
}

async function attempt(base: string, entries: readonly HostileEntry[], rounds: readonly (readonly Wish[])[]): Promise<void> {
  const [folder, outside, evil, ran] = ["folder", "outside", "evil.sh", "ran"].map((each) => join(base, each)) as [
    string,
    string,
    string,
    string,
  ];
  mkdirSync(join(outside, "keys"), { recursive: true });
  mkdirSync(join(outside, "empty"));
  for (const each of ["secret", "keys/k"]) writeFileSync(join(outside, each), "mine\n", { mode: 0o640 });
  for (const each of ["secret", "keys/k", "keys", "empty", ""]) utimesSync(join(outside, each), 1_000_000, 1_000_000);
  writeFileSync(evil, `#!/bin/sh\ntouch ${ran}\nexit 1\n`);
  chmodSync(evil, 0o755);
  mkdirSync(folder);
  for (const entry of entries) plant(folder, entry, { outside, evil });
  const before = fingerprint(outside);
  const fill = (text: string) => text.replaceAll("OUT", outside).replaceAll("EVIL", evil);
  for (const wishes of rounds) {
    const dangers = new Set([...dangersIn(folder), ...waysOutOnceThere(folder)]);
    const changes = await changesOf(folder, wishes, fill);
    renderDiff(changes);
    await diffStat(changes);
    await orRefused(
      commitToBranch(changes, {
        folder,
        name: "x",
        message: "m",
        author: { name: "a", email: "a@x" },
        git: { path: process.env.PATH ?? "" },
        locks: { stateDir: join(base, "state") },
      }),
    );
    await orRefused(applyChanges(changes, { folder, stateDir: join(base, "state"), includeConfiguration: true, force: true }));
    expect(fingerprint(outside)).toEqual(before);
    expect(existsSync(ran), "nothing runs").toBe(false);
    expect([...dangersIn(folder)].filter((danger) => !dangers.has(danger))).toEqual([]);
  }
}

test(`changes and runs nothing outside, whatever the tree and changes (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(hostileEntry, { maxLength: 12 }),
      fc.array(fc.array(wish, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 }),
      async (entries, rounds) => {
        const base = mkdtempSync(join(tmpdir(), "caisson-test-"));
        try {
          await attempt(base, entries, rounds);
        } finally {
          rmSync(base, { recursive: true, force: true });
        }
      },
    ),
    { seed: SEED, numRuns: tries(150), interruptAfterTimeLimit: TIME_MS_MAX, markInterruptAsFailure: false },
  );
});
