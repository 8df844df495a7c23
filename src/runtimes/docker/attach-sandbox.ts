import { gitSettingsEnv } from "../../sandbox/git-settings.ts";
import { createGuestSandbox } from "../../sandbox/guest-sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { infoOf, type SandboxRecord } from "../../sandbox/store.ts";
import { detailsOf } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import { createDockerWall } from "./docker-wall.ts";
import type { Engine } from "./engine.ts";
import { connectToGuest } from "./guest-socket.ts";

/** Connects to a sandbox's guest and assembles the sandbox. Throws `lost` if the guest no longer exists. */
export async function attachSandbox(
  docker: DockerContext,
  options: { record: SandboxRecord; engine: Engine; fresh?: boolean },
): Promise<OwnedSandbox> {
  const { record, engine, fresh = false } = options;
  const details = detailsOf(record);
  const connection = await connectToGuest({ sandboxFolder: docker.store.dir(record.id), fresh });
  return createGuestSandbox({
    info: infoOf(record),
    config: record.spec,
    connection,
    wall: createDockerWall(docker, { record, engine }),
    onEvent: docker.context.onEvent,
    defaultEnv: { ...gitSettingsEnv, ...details.env },
  });
}
