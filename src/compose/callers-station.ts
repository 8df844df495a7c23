import type { RemoteStation } from "../client/station/remote-station.ts";
import { defined } from "../lib/defined.ts";
import type { AgentVerbs } from "../station/agents/verbs.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { SandboxVerbs } from "../station/sandboxes/verbs.ts";
import type { Station } from "../station/station.ts";
import { type CallersOptions, notSent, ociRuntimeElsewhere, secretsOfCaller } from "./caller.ts";
import type { StationHere } from "./here.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import { agentKinds, runKinds } from "./verb-kinds.ts";

/**
 * A station with which a command works as if it did everything itself: agents are the caller's files, the model and the
 * runtime that the caller's configuration names are used, and what is in the caller's own environment, such as a
 * secret, does not have to be in the station's. What needs that is done by this process where the station is on this
 * machine, and refused where it is not.
 */
export function callersStation(remote: RemoteStation, options: CallersOptions): { station: Station; removeOwn(): Promise<void> } {
  let used: StationHere | undefined;
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
      agents: lazyVerbs<AgentVerbs>(agentKinds, async () => (await here()).station.agents),
      sandboxes: callersSandboxes(remote.sandboxes, own),
      runs: lazyVerbs<RunVerbs>(runKinds, async () => (await import("./callers-runs.ts")).callersRuns(remote.runs, own)),
      async [Symbol.asyncDispose]() {
        await remote[Symbol.asyncDispose]();
        await used?.station[Symbol.asyncDispose]();
      },
    },
  };
}

function callersSandboxes(remote: SandboxVerbs, { caller, isElsewhere, here, ociRuntime }: CallersOptions): SandboxVerbs {
  return {
    ...remote,
    async create(request, asked) {
      const given = { onNotice: caller.say, ...asked };
      const { secrets, gateway } = request.spec;
      const names = secretsOfCaller({ secrets, secretNames: request.secretNames }, { caller, isElsewhere });
      if (isElsewhere) {
        if (names.length > 0) throw notSent(names);
        // A run names it in its settings; of a sandbox alone nothing would say so.
        if (ociRuntime !== undefined) throw ociRuntimeElsewhere(ociRuntime);
        return remote.create(request, given);
      }
      // The keys of models are the environment's, too.
      if (names.length > 0 || gateway !== undefined) return (await here()).station.sandboxes.create(request, given);
      return remote.create({ ...request, ...defined({ runtime: request.runtime ?? caller.config.runtime }) }, given);
    },
  };
}
