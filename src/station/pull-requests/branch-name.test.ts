import fc from "fast-check";
import { expect, test } from "vitest";
import { isBranchName } from "../../workspace/git/ref-name.ts";
import { branchName, freeBranch, SLUG_CHARACTERS_MAX, slugOf } from "./branch-name.ts";

test("a slug keeps the first words of a text and cuts between words", () => {
  expect(slugOf("Mend the addition")).toBe("mend-the-addition");
  expect(slugOf("Größe  der  Überschrift, § 3!")).toBe("gro-e-der-uberschrift-3");
  expect(slugOf("A very long title that continues")).toBe("a-very-long-title-that");
  expect(slugOf("supercalifragilisticexpialidocious")).toBe("supercalifragilisticexpia");
  expect(slugOf("…")).toBe("changes");
});

test("git accepts the branch name made from any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 80 }), (text) => {
      const slug = slugOf(text);
      expect(slug.length).toBeLessThanOrEqual(SLUG_CHARACTERS_MAX);
      expect(isBranchName(branchName({ kind: "fix", ticket: "12", slug }))).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test("a taken branch name gets a number unless that branch is at our commit", () => {
  const theirBranches = (...names: string[]) => new Map(names.map((name) => [name, "theirs"]));
  expect(freeBranch("fix/1-a", { taken: theirBranches(), ours: "ours" })).toBe("fix/1-a");
  expect(freeBranch("fix/1-a", { taken: theirBranches("fix/1-a", "fix/1-a-2"), ours: "ours" })).toBe("fix/1-a-3");
  expect(freeBranch("fix/1-a", { taken: new Map([["fix/1-a-2", "ours"]]), ours: "ours" })).toBe("fix/1-a-2");
  expect(freeBranch("fix/1-a", { taken: theirBranches("fix/1-a/b"), ours: "ours" })).toBe("fix/1-a-2");
  expect(() => freeBranch("fix/1-a", { taken: theirBranches("fix"), ours: "ours" })).toThrow(/the remote's branch fix blocks/);
});
