import { describe, expect, it } from "vitest";
import { describeRuntime, isRequired, judgeResult } from "./describe-runtime.ts";
import { conformanceTests } from "./suite.ts";

const known = conformanceTests[0]?.name ?? "";
const absent = async () => ({ absent: "it is only an example" });

describe("exceptions", () => {
  it("must name an existing test and give a reason", () => {
    expect(() => describeRuntime("x", absent, { except: [{ test: "no such test", reason: "because" }] })).toThrow(/no conformance test/);
    expect(() => describeRuntime("x", absent, { except: [{ test: known, reason: " " }] })).toThrow(/no reason/);
  });

  it("skip a failing test, and are an error for a passing one", () => {
    const failed = { test: known, outcome: "failed", error: new Error("broken"), durationMs: 1 } as const;
    const passed = { test: known, outcome: "passed", durationMs: 1 } as const;
    expect(judgeResult(failed, { reason: "known" })).toEqual({ kind: "skipped", reason: "known" });
    expect(judgeResult(passed, { reason: "known" })).toMatchObject({ kind: "failed" });
    expect(judgeResult(failed, undefined)).toMatchObject({ kind: "failed", error: failed.error });
    expect(judgeResult(passed, undefined)).toEqual({ kind: "passed" });
    expect(judgeResult({ test: known, outcome: "skipped", reason: "no means", durationMs: 0 }, undefined)).toEqual({
      kind: "skipped",
      reason: "no means",
    });
  });
});

describe("required runtimes", () => {
  it("match a runtime's name or its kind", () => {
    expect(isRequired("oci-runc", ["oci"])).toBe(true);
    expect(isRequired("oci", ["oci"])).toBe(true);
    expect(isRequired("ocify", ["oci"])).toBe(false);
    expect(isRequired("docker", ["oci", "host"])).toBe(false);
  });
});
