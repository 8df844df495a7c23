import type { Capabilities, SandboxConfig, SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";

/**
 * A feature that a runtime may lack. A test that needs it is skipped if it is absent, and a test that needs `!feature`
 * if it is present.
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

/** The result of a test that could not run. */
export interface Skipped {
  skipped: string;
}

export interface ConformanceTest {
  /** Unique; `except` refers to it. */
  name: string;
  needs?: Need;
  run(context: ConformanceContext): Promise<Skipped | undefined>;
}

/** The context of a test. Everything created through it is removed after the test. */
export interface ConformanceContext {
  readonly runtime: Runtime;
  readonly capabilities: Capabilities;
  /** The longest wait for anything that should happen immediately. */
  readonly patienceMs: number;
  /** Returns the sandbox that all tests share, for tests that only change files in their own folder. */
  sandbox(): Promise<OwnedSandbox>;
  /** Creates an empty folder in the shared sandbox's workspace. */
  folder(): Promise<string>;
  /** Creates a sandbox for this test alone. */
  create(config?: SandboxConfigInput): Promise<OwnedSandbox>;
  /** Returns the config that `create` would use, for tests that call the runtime themselves. */
  configOf(input?: SandboxConfigInput): SandboxConfig;
  /** Registers a sandbox that the test created some other way, to destroy it at the end. */
  adopt(sandbox: OwnedSandbox): OwnedSandbox;
  /** Creates an empty folder on the host that the sandbox's user can access. */
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

/** Returns why a test does not apply to a runtime, or null if it does. */
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
