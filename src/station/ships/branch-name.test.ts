import fc from "fast-check";
import { expect, test } from "vitest";
import { isBranchName } from "../../workspace/git/ref-name.ts";
import { branchName, freeBranch, SLUG_CHARACTERS_MAX, slugOf } from "./branch-name.ts";

test("a slug is some words of a text, cut between words", () => {
  expect(slugOf("Mend the addition")).toBe("mend-the-addition");
  expect(slugOf("Größe  der  Überschrift, § 3!")).toBe("gro-e-der-uberschrift-3");
  expect(slugOf("A very long title that goes on")).toBe("a-very-long-title-that");
  expect(slugOf("supercalifragilisticexpialidocious")).toBe("supercalifragilisticexpia");
  expect(slugOf("…")).toBe("changes");
});

test("whatever the text, the branch's name is one that git takes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 80 }), (text) => {
      const slug = slugOf(text);
      expect(slug.length).toBeLessThanOrEqual(SLUG_CHARACTERS_MAX);
      expect(isBranchName(branchName({ kind: "fix", ticket: "12", slug }))).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test("a name that is taken gets a number, one that is at our commit is ours, and nothing is put beside what is in the way", () => {
  const taken = (...names: string[]) => new Map(names.map((name) => [name, "theirs"]));
  expect(freeBranch("fix/1-a", { taken: taken(), ours: "ours" })).toBe("fix/1-a");
  expect(freeBranch("fix/1-a", { taken: taken("fix/1-a", "fix/1-a-2"), ours: "ours" })).toBe("fix/1-a-3");
  expect(freeBranch("fix/1-a", { taken: new Map([["fix/1-a-2", "ours"]]), ours: "ours" })).toBe("fix/1-a-2");
  expect(freeBranch("fix/1-a", { taken: taken("fix/1-a/b"), ours: "ours" })).toBe("fix/1-a-2");
  expect(() => freeBranch("fix/1-a", { taken: taken("fix"), ours: "ours" })).toThrow(/beside the remote's branch fix/);
});
