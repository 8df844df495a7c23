import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { containerName } from "./container-config.ts";
import type { Engine } from "./engine.ts";
import { takeSocket } from "./guest-socket.ts";

/** How long the guest may take to listen after the engine has reported that the sandbox runs. */
const GUEST_START_MS = 20_000;

/** Starts a sandbox's container and takes its guest's socket as soon as it exists. */
export async function startContainer(options: {
  engine: Engine;
  id: SandboxId;
  sandboxFolder: string;
  signal?: AbortSignal | undefined;
}): Promise<void> {
  const { engine, id, sandboxFolder, signal } = options;
  const container = engine.docker.getContainer(containerName(id));
  await engine.call(`starting sandbox ${id}`, () => container.start());
  const alive = async () => {
    const { State } = await engine.call(`inspecting sandbox ${id}`, () => container.inspect());
    if (!State.Running) throw new CaissonError("internal", `the guest of sandbox ${id} exited with ${State.ExitCode} before it listened`);
  };
  await takeSocket({ sandboxFolder, timeoutMs: GUEST_START_MS, alive, signal });
}
