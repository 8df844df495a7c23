import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { attachEngine, readRecord, startDockerEngine, stopEngine, type TestEngine, withLock } from "./docker-engine-process.ts";
import { processLives } from "./docker-remains.ts";
import { startPodmanEngine } from "./podman-engine.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the run's shared engines, created by docker-global-setup.ts. */
    enginesFolder: string;
  }
}

/** Returns the run's shared engine, which starts when the first test needs it. */
export async function useDockerEngine(): Promise<TestEngine> {
  return useEngine("docker", startDockerEngine);
}

export async function usePodmanEngine(): Promise<TestEngine> {
  return useEngine("podman", startPodmanEngine);
}

async function useEngine(kind: TestEngine["kind"], start: (options: { folder: string }) => Promise<TestEngine>): Promise<TestEngine> {
  const shared = inject("enginesFolder") as string | undefined;
  if (shared === undefined) throw new Error("test/support/docker-global-setup.ts is not among this project's global set-ups");
  const folder = join(shared, kind);
  await withLock(join(shared, `${kind}.lock`), async () => {
    const record = readRecord(folder);
    if (record !== null && processLives(record.pid)) return;
    if (existsSync(folder)) await stopEngine(folder);
    mkdirSync(folder);
    await start({ folder });
  });
  return attachEngine(folder);
}
