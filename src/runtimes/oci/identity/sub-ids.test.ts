import { describe, expect, it } from "vitest";
import { furtherRanges, parseSubIds, rangeStartOf, rootlessMap, rootRangeStart, subIdRangeOf, workspaceMap } from "./sub-ids.ts";

describe("parseSubIds", () => {
  it("reads names and numbers, and skips lines that are not ranges", () => {
    const text = "alice:100000:65536\n# a comment\n\n1001:165536:65536\nbroken:x:1\nbob:300000\n";
    expect(parseSubIds(text)).toEqual([
      { name: "alice", start: 100_000, count: 65_536 },
      { name: "1001", start: 165_536, count: 65_536 },
    ]);
  });
});

describe("subIdRangeOf", () => {
  const ranges = parseSubIds("alice:100000:1000\nalice:200000:65536\n1001:300000:65536\n");
  it("finds the first range with enough room, by name or by number", () => {
    expect(subIdRangeOf(ranges, { name: "alice", uid: 1000 }, 65_535)?.start).toBe(200_000);
    expect(subIdRangeOf(ranges, { name: "carol", uid: 1001 }, 65_535)?.start).toBe(300_000);
  });
  it("finds no range for other users", () => {
    expect(subIdRangeOf(ranges, { name: "dave", uid: 7 }, 1)).toBeNull();
  });
});

describe("rootRangeStart", () => {
  it("is the start of root's own range if both files agree", () => {
    const ranges = parseSubIds("root:500000:65536\n");
    expect(rootRangeStart(ranges, ranges)).toBe(500_000);
  });
  it("avoids all existing ranges", () => {
    const free = rootRangeStart([], []);
    const usedRanges = [{ name: "x", start: free - 10, count: 100 }];
    const next = rootRangeStart(usedRanges, [{ name: "y", start: free + 90, count: 65_536 }]);
    expect(next).toBe(free + 90 + 65_536);
  });
});

describe("further ranges", () => {
  it("are in root's own range if there is one, otherwise below 2^31", () => {
    expect(furtherRanges(500_000, parseSubIds("root:500000:65536\n"))).toBe(0);
    expect(furtherRanges(500_000, parseSubIds("root:500000:655360\n"))).toBe(9);
    expect(furtherRanges(1_900_019_712, [])).toBe(3_775);
    const first = 500_000;
    expect([first, first + 65_535, first + 65_536, first + 70_000, 0].map((id) => rangeStartOf(id, first) - first)).toEqual([
      0, 0, 65_536, 65_536, 0,
    ]);
  });
});

describe("id maps", () => {
  it("rootless: map every id inside once, the caller at 1000", () => {
    const lines = rootlessMap({ own: 1234, start: 100_000 });
    expect(lines.reduce((sum, { count }) => sum + count, 0)).toBe(65_536);
    expect(lines.find(({ inside }) => inside === 1000)).toEqual({ inside: 1000, outside: 1234, count: 1 });
    expect(Math.max(...lines.filter(({ outside }) => outside >= 100_000).map(({ outside, count }) => outside + count))).toBe(
      100_000 + 65_535,
    );
  });

  const overlap = (a: { from: number; count: number }, b: { from: number; count: number }) =>
    a.from < b.from + b.count && b.from < a.from + a.count;
  it.each([0, 1, 501, 999, 1000, 1_000_500, 1_001_000])(
    "workspace of owner %i: have no overlaps; the owner is the sandbox's user",
    (owner) => {
      for (const readable of [true, false]) {
        const lines = workspaceMap({ owner, start: 1_000_000, stored: 1_000_000, readable });
        expect(lines).toContainEqual({ inside: owner, outside: 1_001_000, count: 1 });
        for (const [index, line] of lines.entries()) {
          for (const other of lines.slice(index + 1)) {
            expect(overlap({ from: line.inside, count: line.count }, { from: other.inside, count: other.count })).toBe(false);
            expect(overlap({ from: line.outside, count: line.count }, { from: other.outside, count: other.count })).toBe(false);
          }
        }
      }
    },
  );
  it("give root's files in a workspace one range on disk, whichever the sandbox has", () => {
    const lines = workspaceMap({ owner: 501, start: 2_000_000, stored: 1_000_000, readable: false });
    expect(lines).toContainEqual({ inside: 1_000_000, outside: 2_000_000, count: 1000 });
  });
  it("never map the host's root to root inside in a writable workspace", () => {
    const lines = workspaceMap({ owner: 501, start: 1_000_000, stored: 1_000_000, readable: false });
    expect(lines.some(({ inside, count }) => inside <= 0 && 0 < inside + count)).toBe(false);
  });
});
