import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayConfig } from "../../contract/network/network.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { agentSeeds } from "../sandbox-setup/agent-seeds.ts";

/** The home folder of a sandbox's user, with every isolating runtime. */
const HOME_INSIDE = "/home/user";

/** Writes what agents need for a first start. Existing files, from an image or a kept home, stay unchanged. */
export async function seedAgents(sandbox: Pick<Sandbox, "writeFile">, config: GatewayConfig | undefined): Promise<void> {
  const seeds = config?.wires.flatMap((wire) => agentSeeds[wire]) ?? [];
  for (const { path, text } of seeds) {
    try {
      await sandbox.writeFile(join(HOME_INSIDE, path), Buffer.from(text), { how: "create", parents: true, mode: 0o600 });
    } catch (error) {
      // The file exists, or the home is not writable: the agent then asks its questions, as it normally would.
      if (!(error instanceof CaissonError) || !["exists", "denied", "no_space", "invalid", "conflict"].includes(error.code)) throw error;
    }
  }
}
