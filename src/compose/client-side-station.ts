import type { RemoteStation } from "../client/remote/remote-station.ts";
import { defined } from "../lib/defined.ts";
import type { AgentVerbs } from "../verbs/agents.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { SandboxVerbs } from "../verbs/sandboxes.ts";
import type { Station } from "../verbs/station.ts";
import { type ClientSideOptions, notSent, ociRuntimeElsewhere, secretsOfCaller } from "./caller.ts";
import type { InProcessStation } from "./in-process-station.ts";
import { lazyGroup } from "./lazy-verbs.ts";

/**
 * Wraps a station so that a command works as if it did everything itself. It uses the caller's agent files, and the
 * model and runtime of the caller's configuration. Secrets may be in the caller's environment alone: this process then
 * does the work that needs them if the station is on this machine, and refuses it otherwise.
 */
export function clientSideStation(remote: RemoteStation, options: ClientSideOptions): { station: Station; removeOwn(): Promise<void> } {
  let used: InProcessStation | undefined;
  const here = async () => {
    used = await options.here();
    return used;
  };
  const own = { ...options, here };
  return {
    async removeOwn() {
      await Promise.all([remote.removeOwn(), used?.station.sandboxes.removeOwn()]);
    },
    station: {
      ...remote,
      agents: lazyGroup<AgentVerbs>("agents", async () => (await here()).station.agents),
      sandboxes: clientSideSandboxes(remote.sandboxes, own),
      runs: lazyGroup<RunVerbs>("runs", async () => (await import("./client-side-runs.ts")).clientSideRuns(remote.runs, own)),
      async [Symbol.asyncDispose]() {
        await remote[Symbol.asyncDispose]();
        await used?.station[Symbol.asyncDispose]();
      },
    },
  };
}

function clientSideSandboxes(remote: SandboxVerbs, { caller, isElsewhere, here, ociRuntime }: ClientSideOptions): SandboxVerbs {
  return {
    ...remote,
    async create(request, choices) {
      const options = { onNotice: caller.say, ...choices };
      const { secrets, gateway } = request.spec;
      const names = secretsOfCaller({ secrets, secretNames: request.secretNames }, { caller, isElsewhere });
      if (isElsewhere) {
        if (names.length > 0) throw notSent(names);
        // A run carries the OCI runtime in its settings; a request for a sandbox has no field for it.
        if (ociRuntime !== undefined) throw ociRuntimeElsewhere(ociRuntime);
        return remote.create(request, options);
      }
      // Model keys come from the environment as well.
      if (names.length > 0 || gateway !== undefined) return (await here()).station.sandboxes.create(request, options);
      return remote.create({ ...request, ...defined({ runtime: request.runtime ?? caller.config.runtime }) }, options);
    },
  };
}
