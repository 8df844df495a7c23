import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxConfig, type SandboxConfigInput } from "../src/contract/sandbox/sandbox.ts";
import { createDockerRuntime } from "../src/runtimes/docker/runtime.ts";
import { createOciRuntime, type OciOptions, type OciRuntime } from "../src/runtimes/oci/runtime.ts";
import { startDockerEngine } from "../test/support/docker-engine-process.ts";
import { makePlainBundle, runPeer } from "./peers.ts";

/**
 * Everything that one run of the bench measures with: our runtimes and what a user would use instead, all alive at
 * once.
 */
export interface Place extends AsyncDisposable {
  dir: string;
  root: string;
  /** The `docker` command line with this run's engine. */
  docker: readonly string[];
  /** A busybox image of that engine. */
  image: string;
  oci(options: { ociRuntime: "runc" | "crun"; pool?: NonNullable<OciOptions["pool"]>; criu?: string; stateDir?: string }): OciRuntime;
  dockerRuntime: Awaited<ReturnType<typeof createDockerRuntime>>;
  /** Makes a bundle for the plain OCI runtime. */
  bundle(runtime: "runc" | "crun", args: readonly string[]): Promise<string>;
}

/** How many runtimes one run creates, each with a separate state folder. */
const RUNTIMES_MAX = 16;

export async function openPlace(): Promise<Place> {
  const root = join(import.meta.dirname, "..");
  const dir = await mkdtemp(join(tmpdir(), "caisson-bench-"));
  for (const name of ["docker-state", ...Array.from({ length: RUNTIMES_MAX }, (_, index) => `oci-${index}`)])
    await mkdir(join(dir, name), { mode: 0o700 });
  const engine = await startDockerEngine();
  const image = await engine.image("busybox");
  const guestPath = join(root, "guest", "build", "caisson-guest");
  const runtimes: AsyncDisposable[] = [];
  let bundles = 0;
  const dockerRuntime = await createDockerRuntime(
    { stateDir: join(dir, "docker-state"), guestPath },
    { host: `unix://${engine.socketPath}`, defaultImage: image },
  );
  runtimes.push(dockerRuntime);
  return {
    dir,
    root,
    docker: ["docker", "-H", `unix://${engine.socketPath}`],
    image,
    dockerRuntime,
    oci({ stateDir, ...options }) {
      const runtime = createOciRuntime(
        { stateDir: stateDir ?? join(dir, `oci-${runtimes.length}`), guestPath },
        { home: homedir(), path: process.env.PATH ?? "", ...options },
      );
      runtimes.push(runtime);
      return runtime;
    },
    async bundle(runtime, args) {
      bundles += 1;
      const bundleDir = join(dir, `bundle-${bundles}`);
      await runPeer(["mkdir", "-p", bundleDir]);
      return makePlainBundle({ runtime, dir: bundleDir, busybox: "/bin/busybox", args });
    },
    async [Symbol.asyncDispose]() {
      for (const runtime of runtimes) await runtime[Symbol.asyncDispose]();
      await engine.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export const configOf = (input: SandboxConfigInput = {}) => SandboxConfig.parse(input);
