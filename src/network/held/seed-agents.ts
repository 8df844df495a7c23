import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { GatewaySpec } from "../../contract/network.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { agentSeeds } from "../inside/agent-seeds.ts";

/** The home of a sandbox's user, with every wall. */
const HOME_INSIDE = "/home/user";

/** Writes what agents need for a first start. What is there already, from an image or a kept home, is left as it is. */
export async function seedAgents(sandbox: Pick<Sandbox, "writeFile">, spec: GatewaySpec | undefined): Promise<void> {
  const seeds = spec?.wires.flatMap((wire) => agentSeeds[wire]) ?? [];
  for (const { path, text } of seeds) {
    try {
      await sandbox.writeFile(join(HOME_INSIDE, path), Buffer.from(text), { how: "create", parents: true, mode: 0o600 });
    } catch (error) {
      // A file that is there, or a home that cannot be written to: the agent asks its questions, as it would anyway.
      if (!(error instanceof CaissonError) || !["exists", "denied", "no_space", "invalid", "conflict"].includes(error.code)) throw error;
    }
  }
}
