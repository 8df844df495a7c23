import { CaissonError } from "../contract/error/error.ts";
import { type Once, once } from "../lib/once.ts";
import type { LocalAudit } from "../station/audit/local-audit.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { LocalNetworks } from "../station/networks/local-networks.ts";
import type { LocalSandboxes, SandboxChange } from "../station/sandboxes/local-sandboxes.ts";
import type { LocalTokens } from "../station/tokens/local-tokens.ts";
import type { LocalWebhooks } from "../station/webhooks/local-webhooks.ts";
import type { AttackedStation } from "../suites/station-attack/station-claim.ts";
import type { MachineVerbs } from "../verbs/machine.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { SessionVerbs } from "../verbs/sessions.ts";
import type { Station } from "../verbs/station.ts";
import type { UploadVerbs } from "../verbs/uploads.ts";
import { composeJobs } from "./durable-jobs.ts";
import {
  composeAgents,
  composeAudit,
  composeGuardian,
  composeHealth,
  composeImages,
  composeInbox,
  composeInside,
  composeSecrets,
  composeTemplates,
  composeTokens,
  composeWebhooks,
  startGuardianOf,
} from "./groups.ts";
import { lazyGroup } from "./lazy-verbs.ts";
import type { LocalParts } from "./local-parts.ts";
import { createServing, type Serving } from "./serving.ts";

export interface StationParts extends Omit<LocalParts, "removeSandbox"> {
  version: string;
  guestPath: string;
  /** Starts a station to attack. Absent if this program cannot start itself again. */
  startAttackedStation?: () => Promise<AttackedStation & AsyncDisposable>;
}

/** The verbs, and what only this program itself may do. */
export interface LocalVerbs extends Station {
  readonly sandboxes: LocalSandboxes;
  readonly networks: LocalNetworks;
  readonly tokens: LocalTokens;
  readonly audit: LocalAudit;
  /** Runs health checks, as a serving station does; see `HealthVerbs`. */
  watch(onDefect: (error: unknown) => void): Promise<AsyncDisposable>;
  /** Records sandbox changes in their logs, as a serving station does. */
  chronicle(onDefect: (error: unknown) => void): Promise<AsyncDisposable>;
  /** Drives durable jobs, as a serving station does, until it is closed. */
  drive(onDefect: (error: unknown) => void): Promise<void>;
  /**
   * Monitors the progress of runs, as a serving station does; see `GuardianVerbs`. Null if the guardian is switched
   * off.
   */
  guard(onDefect: (error: unknown) => void): Promise<AsyncDisposable | null>;
  /** Turns this process into a station; call before any use of runs. */
  serve: Serving["verbs"]["serve"];
  /** Pauses the stream that brought down the previous station, before any run is continued. */
  pausePoisoned: Serving["verbs"]["pausePoisoned"];
  readonly webhooks: LocalWebhooks;
}

/** Composes the station of this machine and state folder. Each group of verbs loads with its first call. */
export function composeStation(parts: StationParts): LocalVerbs {
  const { stateDir, runtimes, resolver, config } = parts;
  const serving = createServing({ open: () => local() });
  const local: Once<LocalStation> = once(async () =>
    serving.opened(await openLocal({ ...parts, removeSandbox: (id) => sandboxes.remove(id) })),
  );
  const changes = createEmitter<SandboxChange>();
  const sandboxes = lazyGroup<LocalSandboxes>(
    "sandboxes",
    async () => {
      const { createLocalSandboxes } = await import("../station/sandboxes/local-sandboxes.ts");
      return createLocalSandboxes({
        stateDir,
        runtimes,
        resolver,
        defaultRuntime: config.runtime,
        home: parts.home,
        notice: parts.say,
        onChange: changes.tell,
        claimName: async (name, claimed) => (await local()).core.claimName(name, claimed),
        treeOfUpload: async (upload, by) => (await local()).uploads.treeOf(upload, by),
        secretsOf: async (owner) => (await import("./local-parts.ts")).secretsOf(parts, owner),
        async finishRuns(ofRuns) {
          const { finishRuns } = await import("../station/runs/finish-runs.ts");
          await finishRuns({ ...(await local()).core, runtimes: ofRuns });
        },
      });
    },
    { removeOwn: "answer", keepIdle: "answer" },
  );
  const runs = lazyGroup<RunVerbs>("runs", async () => (await local()).verbs.runs);
  const networks = lazyGroup<LocalNetworks>(
    "networks",
    async () => {
      const { createLocalNetworks } = await import("../station/networks/local-networks.ts");
      return createLocalNetworks({ stateDir, runtimes, sandboxes, runs });
    },
    { serve: "answer" },
  );
  const webhooks = composeWebhooks(parts, local);
  const sessions = lazyGroup<SessionVerbs>("sessions", async () => (await local()).verbs.sessions);
  const agents = composeAgents(parts);
  const jobs = composeJobs({ ...parts, local, station: { runs, sessions, sandboxes, agents } });
  const health = composeHealth(parts, local);
  const machine = composeMachine(parts, local, { sandboxes, sessions, runs });
  return {
    ...serving.verbs,
    agents,
    drive: jobs.serve,
    specs: jobs.specs,
    merges: jobs.merges,
    bests: jobs.bests,
    workflows: jobs.workflows,
    sandboxes,
    images: composeImages(parts),
    templates: composeTemplates(parts, local, sandboxes),
    networks,
    machine,
    runs,
    tokens: composeTokens(parts),
    sessions,
    audit: composeAudit(local),
    secrets: composeSecrets(parts),
    webhooks,
    ships: jobs.ships,
    health,
    guardian: composeGuardian(parts, local),
    inbox: composeInbox({ ...jobs, runs, sandboxes, health }),
    uploads: lazyGroup<UploadVerbs>("uploads", async () => (await local()).verbs.uploads),
    inside: composeInside(parts, local),
    async chronicle(onDefect) {
      const [{ startChronicle }, { core }] = await Promise.all([import("../station/sandboxes/sandbox-chronicle.ts"), local()]);
      return startChronicle({ ...core, listen: changes.listen, onDefect });
    },
    async watch(onDefect) {
      const { startWatching } = await import("../station/health/start-watching.ts");
      return startWatching({ local: await local(), runtimes, settings: config.health, onDefect });
    },
    guard: (onDefect) => startGuardianOf(parts, local, onDefect),
    // The runtimes end last: other parts may still have sandboxes to remove.
    async [Symbol.asyncDispose]() {
      await webhooks.close();
      await jobs.close();
      await (await local.opened())?.[Symbol.asyncDispose]();
      await parts.runtimes[Symbol.asyncDispose]();
    },
  };
}

/** Creates an emitter that passes each report to the current listeners. */
function createEmitter<Change>() {
  const listeners = new Set<(change: Change) => void>();
  return {
    tell(change: Change) {
      for (const listener of listeners) listener(change);
    },
    listen(listener: (change: Change) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function composeMachine(
  parts: StationParts,
  local: Once<LocalStation>,
  station: Pick<Station, "sandboxes" | "sessions" | "runs">,
): MachineVerbs {
  const { config } = parts;
  return lazyGroup<MachineVerbs>("machine", async () => {
    const { createLocalMachine } = await import("../station/machine/local-machine.ts");
    return createLocalMachine({
      ...parts,
      station,
      async unusedFiles(templates) {
        const [{ unusedFiles }, { openSteps }, { core, uploads }] = await Promise.all([
          import("./unused-files.ts"),
          import("../station/templates/open-steps.ts"),
          local(),
        ]);
        return unusedFiles({ core, uploads, templates, steps: openSteps({ ...parts, crashpoint: core.crashpoint }) });
      },
      async snapshotUsage(request) {
        const [{ snapshotUsage }, { core }] = await Promise.all([import("../station/machine/snapshot-usage.ts"), local()]);
        return snapshotUsage(request, core);
      },
      hiding: config.workspace,
      defaultRuntime: config.runtime,
      defaultImage: config.image,
      disk: { reserveBytes: config.station.diskReserveBytes },
      async examineModels(ask) {
        const [{ examineModels }, { modelOptions }] = await Promise.all([
          import("../agent/model/examine-models.ts"),
          import("./local-parts.ts"),
        ]);
        return examineModels({ models: modelOptions(parts), defaultModel: config.models.default, ask });
      },
      startAttackedStation: parts.startAttackedStation ?? cannotAttack,
      async listModels(check) {
        const [{ listModels }, { modelOptions }] = await Promise.all([import("../agent/model/list-models.ts"), import("./local-parts.ts")]);
        return listModels({ models: modelOptions(parts), defaultModel: config.models.default, check });
      },
    });
  });
}

async function cannotAttack(): Promise<never> {
  throw new CaissonError("unsupported", "only the command line can start a station to attack", {
    hint: "Run `caisson doctor --attack station`.",
  });
}

async function openLocal(parts: LocalParts): Promise<LocalStation> {
  const [{ openLocalStation }, { sweepUnfinished }] = await Promise.all([
    import("./local-parts.ts"),
    import("../station/sessions/create-session.ts"),
  ]);
  const local = openLocalStation(parts);
  // First, because a new session may have the name of one that was never finished.
  await sweepUnfinished(local.core);
  await local.recoverRewinds();
  return local;
}
