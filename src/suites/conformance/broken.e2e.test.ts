import { describe, expect, it } from "vitest";
import { conformancePrograms } from "../../runtimes/fake/conformance-programs.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { defects, describeBroken } from "./broken/describe-broken.ts";
import { conformanceTests } from "./suite.ts";

describe("the conformance suite", () => {
  it("has a defect for every test, and none for unknown tests", () => {
    expect(Object.keys(defects).sort()).toEqual(conformanceTests.map((test) => test.name).sort());
  });

  it("has unique test names", () => {
    expect(new Set(conformanceTests.map((test) => test.name)).size).toBe(conformanceTests.length);
  });
});

describeBroken("fake", async () => ({ runtime: createFakeRuntime({ programs: conformancePrograms }) }));
