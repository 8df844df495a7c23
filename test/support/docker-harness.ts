import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../src/contract/sandbox/sandbox.ts";
import type { SandboxEvent } from "../../src/contract/sandbox/sandbox-event.ts";
import { createDockerRuntime, type DockerRuntimeOptions } from "../../src/runtimes/docker/runtime.ts";
import type { Runtime } from "../../src/sandbox/runtime.ts";
import type { Sandbox, SpawnOptions } from "../../src/sandbox/sandbox.ts";
import { useDockerEngine } from "./docker-engine.ts";
import type { TestEngine } from "./docker-engine-process.ts";

export const guestPath = join(import.meta.dirname, "../../guest/build/caisson-guest");

/**
 * What the tests of the docker runtime share: an engine, a new state folder for each test, and the check that nothing
 * is left behind.
 */
export interface DockerHarness {
  readonly engine: TestEngine;
  /** The name of a small image. */
  readonly image: string;
  readonly stateDir: string;
  readonly runtime: Runtime;
  readonly events: SandboxEvent[];
  /** Returns another runtime, on the same state folder and engine by default. */
  runtimeWith(options?: DockerRuntimeOptions & { stateDir?: string }): Runtime;
  configOf(config?: SandboxConfigInput): SandboxConfig;
  newFolder(name: string, owner?: number): string;
  docker(...args: string[]): string;
  /** Returns the names of the engine's containers that are sandboxes. */
  containers(): string[];
  images(): string[];
}

/** Registers its hooks in the calling test file. */
export function useDockerHarness(): DockerHarness {
  const folders: string[] = [];
  const current = {} as { engine: TestEngine; image: string; stateDir: string; runtime: Runtime; events: SandboxEvent[] };
  const lines = (...args: string[]) =>
    harness
      .docker(...args)
      .split("\n")
      .filter(Boolean);
  const harness: DockerHarness = {
    get engine() {
      return current.engine;
    },
    get image() {
      return current.image;
    },
    get stateDir() {
      return current.stateDir;
    },
    get runtime() {
      return current.runtime;
    },
    get events() {
      return current.events;
    },
    runtimeWith({ stateDir = current.stateDir, ...options } = {}) {
      const { events } = current;
      return createDockerRuntime(
        { stateDir, guestPath, onEvent: (event) => events.push(event) },
        { socketPath: current.engine.socketPath, ...options },
      );
    },
    configOf: (config = {}) => SandboxConfig.parse({ template: { kind: "image", reference: current.image }, ...config }),
    newFolder(name, owner) {
      const folder = mkdtempSync(join(tmpdir(), `caisson-test-${name}-`));
      folders.push(folder);
      if (owner !== undefined) chownSync(folder, owner, owner);
      return folder;
    },
    docker: (...args) => execFileSync("docker", ["-H", `unix://${current.engine.socketPath}`, ...args], { encoding: "utf8" }),
    containers: () => lines("ps", "-a", "--filter", "label=caisson.sandbox", "--format", "{{.Names}}"),
    images: () => lines("images", "-a", "--format", "{{.Repository}}:{{.Tag}}"),
  };

  beforeAll(async () => {
    current.engine = await useDockerEngine();
    current.image = await current.engine.image("busybox");
  });
  beforeEach(() => {
    current.stateDir = harness.newFolder("state");
    current.events = [];
    current.runtime = harness.runtimeWith();
  });
  afterEach(async () => {
    for (const { id } of await current.runtime.list()) {
      await current.runtime.open(id).then(
        (sandbox) => sandbox.destroy(),
        () => {},
      );
    }
    const left = harness.containers();
    for (const name of left) harness.docker("rm", "-f", name);
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
    expect(left, "sandboxes left in the engine").toEqual([]);
  });
  afterAll(() => {
    expect(harness.images().filter((name) => !/(^|\/)caisson-test:/.test(name))).toEqual([]);
  });
  return harness;
}

export async function run(sandbox: Sandbox, argv: readonly string[], options: Partial<SpawnOptions> = {}) {
  const process = await sandbox.spawn({ argv, ...options });
  let [stdout, stderr] = ["", ""];
  for await (const { stream, data } of process.output) {
    if (stream === "stdout") stdout += Buffer.from(data).toString();
    else stderr += Buffer.from(data).toString();
  }
  return { stdout, stderr, ended: await process.ended };
}

export const sh = (sandbox: Sandbox, script: string, options: Partial<SpawnOptions> = {}) => run(sandbox, ["sh", "-c", script], options);
