import { CaissonError } from "../contract/error.ts";
import type { AgentVerbs } from "../station/agents/verbs.ts";
import type { LocalAudit } from "../station/audit/local-audit.ts";
import type { ImageVerbs } from "../station/images/verbs.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { MachineVerbs } from "../station/machine/verbs.ts";
import type { LocalNetworks } from "../station/networks/local-networks.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { LocalSandboxes, SandboxChange } from "../station/sandboxes/local-sandboxes.ts";
import type { SessionVerbs } from "../station/sessions/verbs.ts";
import type { Station } from "../station/station.ts";
import type { LocalTokens } from "../station/tokens/local-tokens.ts";
import type { UploadVerbs } from "../station/uploads/verbs.ts";
import type { LocalWebhooks } from "../station/webhooks/local-webhooks.ts";
import type { AttackedStation } from "../suites/station/station-claim.ts";
import { composeAudit, composeSecrets, composeTokens } from "./access.ts";
import { composeDriven } from "./driven.ts";
import { composeGuardian, startGuardianOf } from "./guardian.ts";
import { composeHealth } from "./health.ts";
import { composeInbox } from "./inbox.ts";
import { composeInside } from "./inside.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { LocalParts } from "./local-station.ts";
import { openOnce } from "./open-once.ts";
import { createServing, type Serving } from "./serving.ts";
import { agentKinds, runKinds, sandboxKinds, sessionKinds } from "./verb-kinds.ts";
import { composeWebhooks } from "./webhooks.ts";

export interface StationParts extends Omit<LocalParts, "removeSandbox"> {
  version: string;
  guestPath: string;
  /** Starts a station that can be attacked. Absent where this program cannot start itself again. */
  startAttackedStation?: () => Promise<AttackedStation & AsyncDisposable>;
}

/** With what this program itself may do, besides the verbs. */
export interface LocalVerbs extends Station {
  readonly sandboxes: LocalSandboxes;
  readonly networks: LocalNetworks;
  readonly tokens: LocalTokens;
  readonly audit: LocalAudit;
  /** Looks after what is there, as a station does that serves; see `HealthVerbs`. */
  watch(onDefect: (error: unknown) => void): Promise<AsyncDisposable>;
  /** Puts what becomes of sandboxes into their logs, as a station does that serves. */
  chronicle(onDefect: (error: unknown) => void): Promise<AsyncDisposable>;
  /** Drives whatever is driven and no run, as a station does that serves, until it is closed. */
  drive(onDefect: (error: unknown) => void): Promise<void>;
  /** Watches how runs get on, as a station does that serves; see `GuardianVerbs`. Null where it is switched off. */
  guard(onDefect: (error: unknown) => void): Promise<AsyncDisposable | null>;
  /** From now on this process is a station; to be said before anything is done with runs. */
  serve: Serving["verbs"]["serve"];
  /** Pauses what took the station before this one down, before any run is taken up. */
  pausePoisoned: Serving["verbs"]["pausePoisoned"];
  readonly webhooks: LocalWebhooks;
}

/** The station of this machine and state folder: each group of verbs is loaded with its first call. */
export function composeStation(parts: StationParts): LocalVerbs {
  const { stateDir, runtimes, resolver, config } = parts;
  const serving = createServing({ open: () => local() });
  const { local, close } = openOnce(async () => serving.opened(await openLocal({ ...parts, removeSandbox: (id) => sandboxes.remove(id) })));
  const changes = createChanges<SandboxChange>();
  const sandboxes = lazyVerbs<LocalSandboxes>({ ...sandboxKinds, removeOwn: "answer", letRest: "answer" }, async () => {
    const { createLocalSandboxes } = await import("../station/sandboxes/local-sandboxes.ts");
    return createLocalSandboxes({
      stateDir,
      runtimes,
      resolver,
      defaultRuntime: config.runtime,
      home: parts.home,
      notice: parts.say,
      onChange: changes.tell,
      claimName: async (name, claimed) => (await local()).claimName(name, claimed),
      treeOfUpload: async (upload, asked) => (await local()).uploads.treeOf(upload, asked),
      secretsOf: async (owner) => (await import("./local-station.ts")).secretsOf(parts, owner),
      async finishRuns(ofRuns) {
        const { finishRuns } = await import("../station/runs/finish-runs.ts");
        await finishRuns({ ...(await local()), runtimes: ofRuns });
      },
    });
  });
  const runs = composeRuns(local);
  const networks = lazyVerbs<LocalNetworks>(
    {
      show: "answer",
      change: "answer",
      revoke: "answer",
      log: "stream",
      preview: "answer",
      keepPreview: "answer",
      previews: "answer",
      closePreview: "answer",
      forward: "answer",
      ports: "answer",
      watchPorts: "stream",
      serve: "answer",
    },
    async () => {
      const { createLocalNetworks } = await import("../station/networks/local-networks.ts");
      return createLocalNetworks({ stateDir, runtimes, sandboxes, runs });
    },
  );
  const webhooks = composeWebhooks(parts, local);
  const sessions = composeSessions(local);
  const agents = composeAgents(parts);
  const driven = composeDriven({ ...parts, local, station: { runs, sessions, sandboxes, agents } });
  const health = composeHealth(parts, local);
  const machine = composeMachine(parts, { sandboxes, sessions, runs });
  const images = lazyVerbs<ImageVerbs>({ build: "stream", list: "answer", remove: "answer" }, async () => {
    const { createLocalImages } = await import("../station/images/local-images.ts");
    return createLocalImages({ runtimes });
  });
  return {
    ...serving.verbs,
    agents,
    drive: driven.serve,
    specs: driven.specs,
    merges: driven.merges,
    workflows: driven.workflows,
    sandboxes,
    images,
    networks,
    machine,
    runs,
    tokens: composeTokens(stateDir),
    sessions,
    audit: composeAudit(local),
    secrets: composeSecrets(stateDir),
    webhooks,
    ships: driven.ships,
    health,
    guardian: composeGuardian(parts, local),
    inbox: composeInbox({ ...driven, runs, sandboxes, health }),
    uploads: composeUploads(local),
    inside: composeInside(stateDir, local),
    async chronicle(onDefect) {
      const [{ startChronicle }, { createStore }, { log }] = await Promise.all([
        import("../station/sandboxes/sandbox-chronicle.ts"),
        import("../sandbox/store.ts"),
        local(),
      ]);
      return startChronicle({ stateDir, store: createStore({ stateDir }), log, listen: changes.listen, onDefect });
    },
    async watch(onDefect) {
      const { startWatching } = await import("../station/health/start-watching.ts");
      return startWatching({ local: await local(), runtimes, settings: config.health, onDefect });
    },
    guard: (onDefect) => startGuardianOf(parts, local, onDefect),
    // The runtimes last: whoever closes may still have sandboxes to remove.
    async [Symbol.asyncDispose]() {
      await webhooks.close();
      await driven.close();
      await close();
      await parts.runtimes[Symbol.asyncDispose]();
    },
  };
}

/** What is told here is heard by whoever listens just then. */
function createChanges<Change>() {
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

function composeAgents(parts: StationParts): AgentVerbs {
  const { stateDir, config } = parts;
  return lazyVerbs<AgentVerbs>(agentKinds, async () => {
    const [{ createLocalAgents }, { agentPlaces }] = await Promise.all([
      import("../station/agents/local-agents.ts"),
      import("./local-station.ts"),
    ]);
    return createLocalAgents({ stateDir, places: agentPlaces(parts), limits: config.limits });
  });
}

function composeMachine(parts: StationParts, station: Pick<Station, "sandboxes" | "sessions" | "runs">): MachineVerbs {
  const { config } = parts;
  return lazyVerbs<MachineVerbs>(
    {
      doctor: "answer",
      choose: "answer",
      models: "answer",
      attack: "stream",
      conformance: "stream",
      usage: "answer",
      backup: "stream",
      restore: "answer",
      stats: "answer",
      prune: "answer",
      find: "answer",
    },
    async () => {
      const { createLocalMachine } = await import("../station/machine/local-machine.ts");
      return createLocalMachine({
        ...parts,
        station,
        hiding: config.workspace,
        defaultRuntime: config.runtime,
        defaultImage: config.image,
        disk: { reserveBytes: config.station.diskReserveBytes },
        async examineModels(ask) {
          const [{ examineModels }, { modelOptions }] = await Promise.all([
            import("../agent/model/examine-models.ts"),
            import("./local-station.ts"),
          ]);
          return examineModels({ models: modelOptions(parts), defaultModel: config.models.default, ask });
        },
        startAttackedStation: parts.startAttackedStation ?? cannotAttack,
        async listModels(check) {
          const [{ listModels }, { modelOptions }] = await Promise.all([
            import("../agent/model/list-models.ts"),
            import("./local-station.ts"),
          ]);
          return listModels({ models: modelOptions(parts), defaultModel: config.models.default, check });
        },
      });
    },
  );
}

async function cannotAttack(): Promise<never> {
  throw new CaissonError("unsupported", "only the command line can start a station to attack", {
    hint: "Run `caisson doctor --attack station`.",
  });
}

async function openLocal(parts: LocalParts): Promise<LocalStation> {
  const [{ openLocalStation }, { sweepUnfinished }] = await Promise.all([
    import("./local-station.ts"),
    import("../station/runs/new-run.ts"),
  ]);
  const local = openLocalStation(parts);
  // Before anything else: somebody may want to make a session of the same name as one that was never finished.
  await sweepUnfinished(local);
  return local;
}

function composeRuns(local: () => Promise<LocalStation>): RunVerbs {
  return lazyVerbs<RunVerbs>(runKinds, async () => (await local()).verbs.runs);
}

function composeUploads(local: () => Promise<LocalStation>): UploadVerbs {
  return lazyVerbs<UploadVerbs>(
    { put: "answer", list: "answer", get: "answer", remove: "answer", sweep: "answer" },
    async () => (await local()).verbs.uploads,
  );
}

function composeSessions(local: () => Promise<LocalStation>): SessionVerbs {
  return lazyVerbs<SessionVerbs>(sessionKinds, async () => (await local()).verbs.sessions);
}
