import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import type { createGuestSandbox } from "../../../sandbox/guest-sandbox.ts";
import type { Finding } from "../../../sandbox/runtime.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import type { Started } from "../start-sandbox.ts";
import { continueProcesses, dumpMemory } from "./memory-image.ts";
import type { MemoryImage } from "./memory-image-record.ts";

const NEEDED = "what `--memory` and `--to-disk` need";

/**
 * Reports whether processes can be stored and restored, by doing so with a small one. `start` starts a sandbox that no
 * user sees, and `wrap` returns its handle.
 */
export async function memoryFindings(
  oci: OciContext,
  options: {
    start(options: { config: SandboxConfig; memory?: MemoryImage }): Promise<Started>;
    wrap(started: Started): ReturnType<typeof createGuestSandbox>;
  },
): Promise<Finding[]> {
  if (oci.identity().rootless) return [{ level: "note", text: `processes cannot be stored (${NEEDED}): that needs root` }];
  const path = oci.criu();
  if (path === null)
    return [{ level: "note", text: `processes cannot be stored (${NEEDED}): CRIU is not installed`, fix: "install CRIU 4 or later" }];
  const dir = await mkdtemp(join(oci.context.stateDir, ".memory-"));
  try {
    const startedMs = performance.now();
    const config = SandboxConfig.parse({});
    const started = await options.start({ config });
    await using first = options.wrap(started);
    await first.spawn({ argv: ["/bin/sleep", "1000"] });
    let memory: MemoryImage;
    try {
      memory = await dumpMemory(oci, started.details, join(dir, "memory"));
    } finally {
      continueProcesses(started.details);
    }
    await using second = options.wrap(await options.start({ config, memory }));
    const restored = await second.processes();
    if (!restored.some(({ command }) => command.includes("sleep"))) throw new CaissonError("internal", "the restored process is missing");
    const ms = Math.round(performance.now() - startedMs);
    return [{ level: "ok", text: `processes can be stored and restored with ${path} (two sandboxes and one image: ${ms} ms)` }];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return [
      { level: "note", text: `processes cannot be stored (${NEEDED}): ${why}`, fix: "install CRIU 4 or later, built for this kernel" },
    ];
  } finally {
    await removeFiles(oci, [dir]);
  }
}
