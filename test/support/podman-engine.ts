import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cgroupNameFor, newEngineFolder, socketIn, startEngine, type TestEngine } from "./docker-engine-process.ts";

/** Starts Podman's service, which has the same protocol as Docker's. */
export async function startPodmanEngine(options: { folder?: string } = {}): Promise<TestEngine> {
  const folder = options.folder ?? newEngineFolder();
  mkdirSync(join(folder, "tmp"));
  // Its locks would otherwise stay in /dev/shm.
  const settings = join(folder, "containers.conf");
  writeFileSync(settings, '[engine]\nlock_type = "file"\n');
  // Uses runc, because older versions of crun refuse hosts with both cgroup versions mounted.
  // biome-ignore format: one option a line reads best.
  const args = [
    "--root", join(folder, "data"),
    "--runroot", join(folder, "run"),
    "--tmpdir", join(folder, "libpod"),
    "--cgroup-manager", "cgroupfs",
    "--events-backend", "file",
    "--runtime", "runc",
    "system", "service", "--time", "0", `unix://${socketIn(folder)}`,
  ];
  return startEngine({
    kind: "podman",
    folder,
    cgroupName: cgroupNameFor(folder),
    program: "/usr/bin/podman",
    args,
    env: { TMPDIR: join(folder, "tmp"), CONTAINERS_CONF: settings },
  });
}
