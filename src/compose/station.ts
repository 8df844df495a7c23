import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import type { AgentVerbs } from "../station/agents/verbs.ts";
import type { MachineVerbs } from "../station/machine/verbs.ts";
import type { LocalNetworks, LocalNetworksOptions } from "../station/networks/local-networks.ts";
import type { LocalSandboxes } from "../station/sandboxes/local-sandboxes.ts";
import type { SandboxTools } from "../station/sandboxes/tools.ts";
import type { Station } from "../station/station.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { LocalParts } from "./local-station.ts";

export interface StationParts extends LocalParts {
  runtimes: RuntimeSet;
  version: string;
  guestPath: string;
}

/** Loaded with their first use. */
export const sandboxTools = lazyVerbs<SandboxTools>({ runCommand: "answer", copyIn: "answer", copyOut: "answer" }, async () => {
  const [copying, running] = await Promise.all([import("../sandbox/copy.ts"), import("../sandbox/run-command.ts")]);
  return { ...copying, ...running };
});

/** With what this program itself may do, besides the verbs. */
export interface LocalVerbs extends Pick<Station, "agents" | "sandboxes" | "networks" | "machine"> {
  readonly sandboxes: LocalSandboxes;
  readonly networks: LocalNetworks;
}

/** The station of this machine and state folder: each group of verbs is loaded with its first call. */
export function composeStation(parts: StationParts): LocalVerbs {
  const { stateDir, runtimes, resolver, config } = parts;
  const sandboxes = lazyVerbs<LocalSandboxes>(
    {
      create: "answer",
      hold: "answer",
      get: "answer",
      list: "answer",
      stats: "answer",
      pause: "answer",
      resume: "answer",
      snapshot: "answer",
      fork: "answer",
      remove: "answer",
      sweep: "answer",
      snapshots: "answer",
      removeSnapshot: "answer",
      removeOwn: "answer",
    },
    async () => {
      const { createLocalSandboxes } = await import("../station/sandboxes/local-sandboxes.ts");
      return createLocalSandboxes({
        stateDir,
        runtimes,
        resolver,
        defaultRuntime: config.runtime,
        async finishRuns(ofRuns) {
          const [{ openLocalStation }, { finishRuns }] = await Promise.all([
            import("./local-station.ts"),
            import("../station/runs/finish-runs.ts"),
          ]);
          await using local = openLocalStation(parts);
          await finishRuns({ ...local, runtimes: ofRuns });
        },
      });
    },
  );
  const networks = lazyVerbs<LocalNetworks>(
    {
      show: "answer",
      change: "answer",
      revoke: "answer",
      log: "stream",
      preview: "answer",
      forward: "answer",
      ports: "answer",
      watchPorts: "stream",
      serve: "answer",
    },
    async () => {
      const { createLocalNetworks } = await import("../station/networks/local-networks.ts");
      return createLocalNetworks({ stateDir, runtimes, sandboxes, runs: runsOf(parts) });
    },
  );
  const machine = lazyVerbs<MachineVerbs>({ doctor: "answer", choose: "answer", attack: "stream", conformance: "stream" }, async () => {
    const { createLocalMachine } = await import("../station/machine/local-machine.ts");
    return createLocalMachine({ ...parts, defaultRuntime: config.runtime, defaultImage: config.image });
  });
  const agents = lazyVerbs<AgentVerbs>(
    {
      list: "answer",
      show: "answer",
      validate: "answer",
      filesAt: "answer",
      judge: "answer",
      trust: "answer",
      trusted: "answer",
      revoke: "answer",
    },
    async () => {
      const [{ createLocalAgents }, { agentPlaces }] = await Promise.all([
        import("../station/agents/local-agents.ts"),
        import("./local-station.ts"),
      ]);
      return createLocalAgents({ stateDir, places: agentPlaces(parts), limits: config.limits });
    },
  );
  return { agents, sandboxes, networks, machine };
}

/** What networks ask of runs. */
function runsOf(parts: StationParts): LocalNetworksOptions["runs"] {
  return {
    async facts(run) {
      const { openLocalStation } = await import("./local-station.ts");
      await using local = openLocalStation(parts);
      return await local.runs.facts(run);
    },
    async *events(run) {
      const [{ openLocalStation }, { runHistory }] = await Promise.all([
        import("./local-station.ts"),
        import("../station/runs/run-history.ts"),
      ]);
      await using local = openLocalStation(parts);
      await local.runs.facts(run);
      for await (const { event } of runHistory(local.log, run).events()) yield event;
    },
  };
}
