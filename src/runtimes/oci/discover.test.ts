import { describe, expect, it } from "vitest";
import { chosenOciRuntime, knownFlaws, parseVersion } from "./discover.ts";

const runc = (version: string) =>
  knownFlaws("runc", parseVersion(`runc version ${version}`) ?? { text: "", numbers: [0, 0, 0] }).flatMap(({ ids }) => ids);

describe("parseVersion", () => {
  it.each([
    ["runc version 1.1.5+ds1\ncommit: x\n", [1, 1, 5]],
    ["crun version 1.8.1\n", [1, 8, 1]],
    ["runc version 1.2.0-rc.1", [1, 2, 0]],
    ["youki version 0.5", [0, 5, 0]],
  ])("reads %j", (text, numbers) => {
    expect(parseVersion(text)?.numbers).toEqual(numbers);
  });
  it("returns null for other output", () => {
    expect(parseVersion("usage: what\n")).toBeNull();
  });
});

describe("knownFlaws", () => {
  it("lists the flaws of an old runc", () => {
    expect(runc("1.1.5+ds1")).toEqual(["CVE-2024-21626", "CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"]);
    expect(runc("1.1.12")).toEqual(["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"]);
    expect(runc("1.3.2")).toEqual(["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"]);
  });
  it.each(["1.2.8", "1.3.3", "1.4.0", "2.0.0"])("lists no flaws of runc %s", (version) => {
    expect(runc(version)).toEqual([]);
  });
  it("lists no flaws of other programs", () => {
    expect(knownFlaws("crun", { text: "", numbers: [1, 8, 1] })).toEqual([]);
  });
});

describe("chosenOciRuntime", () => {
  it("rejects a program that is not an OCI runtime", () => {
    expect(() => chosenOciRuntime("docker", "/usr/bin")).toThrow(expect.objectContaining({ code: "invalid" }));
  });
  it("reports a runtime that is not installed", () => {
    expect(() => chosenOciRuntime("/nowhere/crun", "/usr/bin")).toThrow(expect.objectContaining({ code: "unavailable" }));
  });
});
