import { describe, expect, test } from "vitest";
import type { Capabilities } from "../contract/sandbox/sandbox.ts";
import { chooseRuntime } from "./choose-runtime.ts";

const capabilities = (changes: Partial<Capabilities> = {}): Capabilities => ({
  isolation: 1,
  sharesHostFilesystem: true,
  templates: ["host", "image"],
  workspaceAccess: ["overlay"],
  mounts: ["overlay"],
  workspaceLayer: false,
  limits: { cpus: true, memoryBytes: true, pids: true, diskBytes: true },
  network: ["none"],
  transparentNetwork: false,
  rootUser: true,
  pause: true,
  snapshot: true,
  paths: true,
  reattach: true,
  reasons: {},
  ...changes,
});
const oci = { name: "oci", capabilities: capabilities(), startMs: 30 };
const docker = { name: "docker", capabilities: capabilities({ templates: ["image"] }), startMs: 300 };
const remote = { name: "remote", capabilities: capabilities({ isolation: 3, sharesHostFilesystem: false }), startMs: 500 };
const host = { name: "host", capabilities: capabilities({ isolation: 0 }), startMs: 1 };
const everything = { available: [host, remote, docker, oci], hasProgram: (program: string) => program === "python3" };

describe("choosing a runtime for a task", () => {
  test("prefers the strongest wall", () => {
    expect(chooseRuntime({}, everything)?.runtime).toBe("remote");
  });
  test("keeps sensitive data and offline work on this machine", () => {
    expect(chooseRuntime({ sensitive: true }, everything)?.runtime).toBe("oci");
    expect(chooseRuntime({ offline: true }, everything)?.runtime).toBe("oci");
  });
  test("prefers the faster start among equal walls", () => {
    const slowOci = { ...oci, startMs: 900 };
    const dockerWithHost = { ...docker, capabilities: capabilities() };
    expect(chooseRuntime({}, { ...everything, available: [slowOci, dockerWithHost] })?.runtime).toBe("docker");
  });
  test("chooses an image if the machine lacks the language", () => {
    expect(chooseRuntime({ language: "python" }, { ...everything, available: [oci] })).toMatchObject({ runtime: "oci", template: "host" });
    const onlyHostTemplate = { ...oci, capabilities: capabilities({ templates: ["host"] }) };
    const choice = chooseRuntime({ language: "ruby", offline: true }, { ...everything, available: [onlyHostTemplate, docker] });
    expect(choice).toMatchObject({ runtime: "docker", template: "image" });
    expect(choice?.reasons.join(" ")).toContain("oci cannot start from an image");
  });
  test("treats an unknown language as the name of its program", () => {
    for (const language of ["zig", "constructor"]) {
      const hasProgram = (program: string) => program === language;
      expect(chooseRuntime({ language }, { ...everything, hasProgram })).toMatchObject({ template: "host" });
    }
  });
  test("never chooses the host runtime, even if nothing else is available", () => {
    expect(chooseRuntime({}, { ...everything, available: [host] })).toBeNull();
  });
});
