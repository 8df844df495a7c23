import { expect, test } from "vitest";
import type { Change } from "../../workspace/change.ts";
import type { ChangedWork } from "./changed-work.ts";
import { diffWork, patchWork } from "./diff-work.ts";

const added = (path: string): Change => ({
  path,
  from: null,
  before: null,
  after: { kind: "file", mode: 0o755, content: Buffer.from("x\n") },
  changedOutside: false,
});

test("marks files in .git as held back, in lists and patches", async () => {
  const changes = [added(".git/hooks/pre-commit"), added("sub/.GIT/config"), added("src/a.ts"), added(".gitignore")];
  const work = { id: "s", changes: async () => ({ changes, leftOut: [], ignored: 0 }) } as unknown as ChangedWork;
  const { files } = await diffWork(work);
  const held = (each: { path: string; heldBack: string | null }[]) =>
    each.filter(({ heldBack }) => heldBack !== null).map(({ path }) => path);
  expect(held(files)).toEqual([".git/hooks/pre-commit", "sub/.GIT/config"]);
  const listed: { path: string; heldBack: string | null }[] = [];
  for await (const piece of patchWork(async () => work)) if (piece.kind === "file") listed.push(piece.file);
  expect(held(listed)).toEqual([".git/hooks/pre-commit", "sub/.GIT/config"]);
});
