import { expect, test } from "vitest";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { changedFields, refuseOtherFields } from "./sandbox-config.ts";

const config = (input: object) => SandboxConfig.parse(input);

test("a runtime rejects fields that it does not know, but ignores defaults", () => {
  const runtime = { runtime: "small", known: ["env" as const] };
  refuseOtherFields(config({ env: { A: "b" }, keep: true, shmBytes: 64 * 2 ** 20 }), runtime);
  expect(() => refuseOtherFields(config({ tmpBytes: 2 ** 20 }), runtime)).toThrow("the small runtime cannot enforce --tmp");
  expect(() => refuseOtherFields(config({ deniedPaths: ["/opt"] }), runtime)).toThrow("cannot enforce --denied-path");
});

test("compares fields by value", () => {
  const base = config({ readOnlyPaths: ["/a"], limits: { pids: 5 } });
  expect(changedFields(config({ readOnlyPaths: ["/a"], limits: { pids: 5 }, name: "x" }), base)).toEqual([]);
  expect(changedFields(config({ readOnlyPaths: ["/b"], limits: { pids: 6 } }), base)).toEqual(["limits", "readOnlyPaths"]);
});
