import { expect, it } from "vitest";
import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { seccompProfile } from "../../hardening/seccomp.ts";
import { compileSeccomp } from "../../hardening/seccomp-filter.ts";
import { filterRecord } from "./call-filter.ts";

const filterOf = (access: "rw" | "overlay") =>
  filterRecord(SandboxConfig.parse({ workspace: { kind: "folder", path: "/work", access } }), "x64");
const compiled = (writesToHost: boolean) => compileSeccomp(seccompProfile({ arch: "x64", writesToHost })).toString("hex");

it("a sandbox that writes to a host folder cannot create a set-user-id file", () => {
  expect(filterOf("rw")).toEqual(["filter", compiled(true)]);
  expect(compiled(true)).not.toBe(compiled(false));
  const mounts = [{ path: "/data", target: "/data", access: "rw" as const }];
  expect(filterRecord(SandboxConfig.parse({ mounts }), "x64")).toEqual(["filter", compiled(true)]);
});

it("other sandboxes have the usual filter", () => {
  expect(filterOf("overlay")).toEqual(["filter", compiled(false)]);
  expect(filterRecord(SandboxConfig.parse({}), "x64")).toEqual(["filter", compiled(false)]);
});

it("a processor without a filter is unsupported", () => {
  expect(() => filterRecord(SandboxConfig.parse({}), "arm")).toThrow(expect.objectContaining({ code: "unsupported" }));
});
