import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { SandboxPath } from "../contract/sandbox/sandbox-fields.ts";
import { resolveSandboxPath } from "./path.ts";

test.each([
  ["/a/b", "/a/b"],
  ["a/b", "/workspace/a/b"],
  [".", "/workspace"],
  ["..a/b..", "/workspace/..a/b.."],
  ["/", "/"],
])("resolves %j to %j", (path, resolved) => {
  expect(resolveSandboxPath(path)).toBe(resolved);
});

test.each(["", "..", "/a/../b", "a/..", "/a\0b", "x".repeat(4_096), `/${"é".repeat(2_050)}`, "\ud800", `${"y".repeat(4_090)}`])(
  "rejects %j",
  (path) => {
    expect(() => resolveSandboxPath(path)).toThrowError(expect.objectContaining({ code: "invalid" }));
  },
);

test("resolves any input to a path of the contract, or rejects it", () => {
  const pieces = fc.array(fc.oneof(fc.constantFrom("..", ".", "", "\0", "a", "ü"), fc.string({ unit: "binary" })), { maxLength: 8 });
  fc.assert(
    fc.property(pieces, fc.boolean(), (parts, absolute) => {
      const path = (absolute ? "/" : "") + parts.join("/");
      try {
        expect(SandboxPath.safeParse(resolveSandboxPath(path)).success).toBe(true);
      } catch (error) {
        expect((error as { code?: string }).code).toBe("invalid");
      }
    }),
    { numRuns: tries(2_000) },
  );
});
