import type { Capabilities, SandboxSpec, SandboxSpecInput } from "../../contract/sandbox.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";

/**
 * What a runtime may or may not be able to do; a test that needs it is skipped where it is absent, and `!feature` where
 * it is present.
 */
export type Feature =
  | "isolation"
  | "reattach"
  | "pause"
  | "snapshot"
  | "paths"
  | "rootUser"
  | "transparentNetwork"
  | "cpus"
  | "memoryBytes"
  | "pids"
  | "diskBytes"
  | "overlay"
  | "rw"
  | "ro"
  | "mountOverlay"
  | "mountRw"
  | "mountRo";
export type Need = Feature | `!${Feature}`;

/** Said by a test that found no means to try what it is for. */
export interface Skipped {
  skipped: string;
}

export interface ConformanceTest {
  /** Unique; what `except` refers to. */
  name: string;
  needs?: Need;
  run(context: ConformanceContext): Promise<Skipped | undefined>;
}

/** What a test is given. Everything made through it is removed after the test. */
export interface ConformanceContext {
  readonly runtime: Runtime;
  readonly capabilities: Capabilities;
  /** The longest wait for anything that ought to happen at once. */
  readonly patienceMs: number;
  /** One sandbox that all tests share; for tests that leave it as it was but for files in their own folder. */
  sandbox(): Promise<OwnedSandbox>;
  /** A fresh, empty folder in the shared sandbox's workspace. */
  folder(): Promise<string>;
  /** A sandbox of the test's own. */
  create(spec?: SandboxSpecInput): Promise<OwnedSandbox>;
  /** The spec `create` would use, for tests that call the runtime themselves. */
  spec(spec?: SandboxSpecInput): SandboxSpec;
  /** Has a sandbox that the test made otherwise destroyed at the end. */
  adopt(sandbox: OwnedSandbox): OwnedSandbox;
  /** An empty folder on the host, open to the sandbox's user. */
  hostFolder(): Promise<string>;
}

export function hasFeature(capabilities: Capabilities, feature: Feature): boolean {
  switch (feature) {
    case "isolation":
      return capabilities.isolation > 0;
    case "cpus":
    case "memoryBytes":
    case "pids":
    case "diskBytes":
      return capabilities.limits[feature];
    case "overlay":
    case "rw":
    case "ro":
      return capabilities.workspaceAccess.includes(feature);
    case "mountOverlay":
      return capabilities.mounts.includes("overlay");
    case "mountRw":
      return capabilities.mounts.includes("rw");
    case "mountRo":
      return capabilities.mounts.includes("ro");
    default:
      return capabilities[feature];
  }
}

/** Why a test does not apply to a runtime; null when it does. */
export function whyNotApplicable(capabilities: Capabilities, need: Need | undefined): string | null {
  if (need === undefined) return null;
  if (need.startsWith("!")) {
    const feature = need.slice(1) as Feature;
    return hasFeature(capabilities, feature) ? `the runtime has ${feature}` : null;
  }
  const feature = need as Feature;
  if (hasFeature(capabilities, feature)) return null;
  return capabilities.reasons[feature] ?? `the runtime has no ${feature}`;
}
