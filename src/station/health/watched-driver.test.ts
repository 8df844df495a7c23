import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bootId } from "../../lib/boot-id.ts";
import { startedProcess } from "../../sandbox/process-identity.ts";
import { watchDriver } from "./watched-driver.ts";

/** Starts a driver in a separate process that ignores SIGTERM, and counts how often its run is taken over. */
async function deafDriver() {
  const child = spawn("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  const started = startedProcess(child.pid as number);
  const driver = { ...started, host: hostname(), bootId: bootId() } as Parameters<typeof watchDriver>[0]["driver"];
  let takenOver = 0;
  const watched = watchDriver({
    run: "run_a",
    owner: "local",
    driver,
    newest: () => "1",
    takeOver: async () => {
      takenOver += 1;
    },
  });
  return { child, watched, takenOver: () => takenOver };
}

afterEach(() => void vi.restoreAllMocks());

describe("an unresponsive driver", () => {
  it("is killed, and its run is taken over", async () => {
    const { watched, takenOver } = await deafDriver();
    const about = { condition: "running" as const, graceMs: 100, signal: new AbortController().signal };
    expect(await watched.restart?.(about)).toMatchObject({ outcome: "restarted" });
    expect(takenOver()).toBe(1);
  });

  it("keeps its run if it is still alive when the station ends", async () => {
    const { child, watched, takenOver } = await deafDriver();
    // Simulates a process that waits for a disk: no signal ends it.
    vi.spyOn(process, "kill").mockReturnValue(true);
    const about = { condition: "running" as const, graceMs: 0, signal: AbortSignal.timeout(100) };
    expect(await watched.restart?.(about)).toMatchObject({ outcome: "failed" });
    expect(takenOver()).toBe(0);
    vi.restoreAllMocks();
    child.kill("SIGKILL");
  });
});
