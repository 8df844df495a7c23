import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import type { HookFunction } from "../../src/agent/hooks.ts";
import type { Model } from "../../src/agent/model/model.ts";
import { createScriptedModel, type Script } from "../../src/agent/model/scripted-model.ts";
import type { RunState } from "../../src/agent/run-state.ts";
import { AgentDefinition } from "../../src/contract/agent/agent.ts";
import type { SecretConfig } from "../../src/contract/network/network.ts";
import type { Budgets } from "../../src/contract/run/run.ts";
import type { RunEvent } from "../../src/contract/run/run-event.ts";
import { type Crashpoint, noCrash } from "../../src/lib/crashpoint.ts";
import type { Log } from "../../src/log/log.ts";
import { createMemoryLog } from "../../src/log/memory/log.ts";
import type { Program } from "../../src/runtimes/fake/program.ts";
import { createFakeRuntime, type FakeRuntime } from "../../src/runtimes/fake/runtime.ts";
import type { RemoveRemains } from "../../src/sandbox/remove-remains.ts";
import type { Runtime } from "../../src/sandbox/runtime.ts";
import { createStore } from "../../src/sandbox/store.ts";
import { uploadedTree } from "../../src/sandbox/uploaded-tree.ts";
import { type Rewinding, restoreRunFiles } from "../../src/station/forks/restore-files.ts";
import { type ClaimName, claimName } from "../../src/station/names/claim-name.ts";
import { findRun } from "../../src/station/names/find-run.ts";
import { withLookup } from "../../src/station/names/with-lookup.ts";
import type { ReplayVerbOptions } from "../../src/station/replay/replay-verb.ts";
import { createRunVerbs, type RunVerbsOptions } from "../../src/station/run-verbs/run-verbs.ts";
import { endRuns } from "../../src/station/runs/end-runs.ts";
import { parseRunEvent } from "../../src/station/runs/owned-journal.ts";
import { createRunDrives, type RunDrives } from "../../src/station/runs/run-drives.ts";
import { turnsOf } from "../../src/station/runs/run-turns.ts";
import { createRuns, type Runs } from "../../src/station/runs/runs.ts";
import { planFork } from "../../src/station/sessions/fork-session.ts";
import { createSessionVerbs, forkSource } from "../../src/station/sessions/session-verbs.ts";
import { runOf, runStream } from "../../src/station/vocabulary/station-names.ts";
import type { Station } from "../../src/verbs/station.ts";
import { createSessionStore, type SessionStore } from "../../src/workspace/sessions.ts";
import { memoryFolder } from "./memory-folder.ts";

/** The parts of an agent that matter to a test. The rest has the defaults of an agent file. */
type AgentInput = Partial<z.input<typeof AgentDefinition>>;

/**
 * A station in memory for tests of runs, with a scripted model, a fake runtime, and a log that a second station can
 * share as another process would.
 */
export interface TestStation extends AsyncDisposable {
  log: Log;
  runtime: FakeRuntime;
  runs: Runs;
  sessions: SessionStore;
  /** The verbs of users, on the same log and runtime. */
  verbs: Pick<Station, "runs" | "sessions">;
  /** The folder that runs work on. */
  folder: string;
  /** The runs for which a separate process would be started. */
  detached: readonly string[];
  /** Returns another process on the same log and runtime. */
  second(options?: { pid?: number }): Runs;
  start(options?: StartOptions): Promise<string>;
  /** Starts a run and waits for its end. */
  finish(options?: StartOptions): Promise<{ run: string; state: RunState; events: RunEvent[] }>;
  events(run: string): Promise<RunEvent[]>;
  /** Resolves with the first event of this type, past or future. */
  until<Type extends RunEvent["type"]>(
    run: string,
    type: Type,
    matching?: (event: Extract<RunEvent, { type: Type }>) => boolean,
  ): Promise<Extract<RunEvent, { type: Type }>>;
}

type ForkedFrom = Parameters<RunVerbsOptions["planFork"]>[0];

interface StartOptions {
  definition?: AgentInput;
  task?: string;
  budgets?: Budgets;
}

export async function createTestStation(options: {
  script: Script | Model;
  agents?: Record<string, AgentInput>;
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  crashpoint?: Crashpoint;
  files?: Record<string, string>;
  log?: Log;
  /** The programs inside the fake sandboxes. */
  programs?: Readonly<Record<string, Program>>;
  /** Wraps the fake runtime. */
  wrapRuntime?: (runtime: Runtime) => Runtime;
  model?: (name: string) => Promise<Model>;
  /** The secrets in the station's configuration. */
  secrets?: Readonly<Record<string, SecretConfig>>;
  /** Whether each run is replayed at the end, which must give the same events. Default: yes. */
  isReplayed?: boolean;
  /** Forks a run at a step. */
  forkAt?: ReplayVerbOptions["forkAt"];
}): Promise<TestStation> {
  const dir = await mkdtemp(join(memoryFolder(), "caisson-test-station-"));
  const { mkdir, writeFile } = await import("node:fs/promises");
  const folder = join(dir, "folder");
  await mkdir(folder);
  for (const [name, text] of Object.entries(options.files ?? {})) await writeFile(join(folder, name), text);
  const log = options.log ?? createMemoryLog();
  const runtime = createFakeRuntime(options.programs ? { programs: options.programs } : {});
  const model = "stream" in options.script ? options.script : createScriptedModel(options.script);
  const dead = new Set<number>();
  const alive = (owner: { pid: number }) => !dead.has(owner.pid);
  const define = (name: string, partial: AgentInput) => AgentDefinition.parse({ name, system: `You are ${name}.`, ...partial });
  const named = (name: string) => define(name, options.agents?.[name] ?? {});
  const detached: string[] = [];
  const make = (pid: number): Pick<TestStation, "runs" | "sessions" | "verbs"> & { drives: RunDrives } => {
    const identity = { pid, host: "here", startTicks: 1, bootId: "boot" };
    const sessions = createSessionStore({ stateDir: dir, log, identity, alive });
    const places = { home: "/nowhere", stateDir: dir };
    const holder = { holder: JSON.stringify(identity), holderGone: () => false };
    const claim: ClaimName = (name, claimed) =>
      claimName(name, { log, sessions, store: createStore({ stateDir: dir }), ...holder, ...claimed });
    const removeRemains: RemoveRemains = async (_, id) => {
      const sandbox = await runtime.open(id).catch(() => null);
      if (sandbox === null) await runtime.sweep();
      else await sandbox.destroy();
    };
    const runs = createRuns({
      claimName: claim,
      log,
      sessions,
      identity,
      alive,
      runtime: async () => options.wrapRuntime?.(runtime) ?? runtime,
      removeRemains,
      model: options.model ?? (async () => model),
      agent: async (name) => named(name),
      crashpoint: options.crashpoint ?? noCrash,
      places,
      ...(options.hooks ? { hooks: options.hooks } : {}),
    });
    const drives = createRunDrives({ drive: runs.drive });
    const trusting = { places: { cwd: folder, ownFolder: null, namedFolders: [], folders: [] }, load: async (name: string) => named(name) };
    const runtimes = async () => [runtime];
    const common = { claimName: claim, log, runs, sessions, stateDir: dir, identity, alive, crashpoint: noCrash, runtimes };
    const viewing = {
      ...common,
      findRun: (word: string) => findRun(word, log),
      facts: (run: string) => runs.facts(run),
      turns: (run: string) => turnsOf(log, run),
      runtime: async () => options.wrapRuntime?.(runtime) ?? runtime,
      git: { path: "", home: dir },
    };
    const forking = { planFork: async (from: ForkedFrom) => planFork(await forkSource(from.session, from, viewing), viewing) };
    const rewinding = {
      ...viewing,
      ...forking,
      ...holder,
      places,
      removeRemains,
      crashpoint: options.crashpoint ?? noCrash,
      restoreFiles: (run: string, to: Rewinding) => restoreRunFiles(run, to, viewing),
    };
    const verbs = {
      runs: withLookup(
        "runs",
        createRunVerbs({
          ...common,
          ...forking,
          rewinding,
          turns: viewing.turns,
          drives,
          replay: { ...viewing, places, removeRemains, model: async () => model, ...(options.forkAt && { forkAt: options.forkAt }) },
          agents: trusting,
          model: async () => model,
          defaultModel: "scripted",
          keyedModel: () => undefined,
          limits: {},
          secretsOf: async () => options.secrets ?? {},
          cwd: folder,
          home: places.home,
          findSnapshot: async (word) => word,
          treeOfUpload: async (upload) => uploadedTree(dir, upload),
          driveDetached: async (run) => void detached.push(run),
          endSandboxes: async () => undefined,
          queue: () => null,
        }),
        { run: (word) => findRun(word, log) },
      ),
      sessions: createSessionVerbs({
        ...viewing,
        store: createStore({ stateDir: dir }),
        endRuns: (session, request) => endRuns(session, request, { log, runs, endSandboxes: async () => undefined }),
        author: { name: "Test", email: "test@localhost" },
      }),
    };
    return { runs, sessions, verbs, drives };
  };
  const first = make(1);
  const checkReplays = async () => {
    const { heads } = await log.heads({ prefix: runStream(""), limit: 1000 });
    for (const { stream } of heads) {
      for await (const event of first.verbs.runs.replay(runOf(stream), {})) {
        if ("result" in event && !event.result.isSame)
          throw new Error(`${stream} does not replay: ${JSON.stringify(event.result.difference)}`);
      }
    }
  };
  const events = async (run: string) => (await log.read(runStream(run), { limit: 100_000 })).map(parseRunEvent);
  const start = async (request: StartOptions = {}): Promise<string> => {
    const id = `s${Math.random().toString(36).slice(2, 10)}`;
    await first.sessions.create({ id, source: { kind: "folder", path: folder }, scope: "session", cleanup: "never" });
    return await first.runs.create({
      definition: define("coder", request.definition ?? {}),
      task: request.task ?? "do it",
      model: "scripted",
      session: id,
      ...(request.budgets ? { budgets: request.budgets } : {}),
    });
  };
  return {
    log,
    runtime,
    folder,
    detached,
    ...first,
    events,
    start,
    second: ({ pid = 2 } = {}) => {
      dead.add(pid - 1);
      return make(pid).runs;
    },
    async finish(request) {
      const run = await start(request);
      const state = await first.runs.drive(run, { signal: new AbortController().signal });
      return { run, state, events: await events(run) };
    },
    async until(run, type, matching = () => true) {
      const abort = new AbortController();
      for await (const stored of log.subscribe(runStream(run), { signal: abort.signal })) {
        const event = parseRunEvent(stored);
        if (event.type === type && matching(event as never)) return event as never;
      }
      throw new Error("unreachable");
    },
    async [Symbol.asyncDispose]() {
      if (options.isReplayed !== false) await checkReplays();
      await first.drives[Symbol.asyncDispose]();
      await runtime.sweep();
      for (const info of await runtime.list()) await (await runtime.open(info.id)).destroy();
      await runtime[Symbol.asyncDispose]();
      if (options.log) await log[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export const never = new AbortController().signal;

/** Calls in the form of a script. */
export const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
export const read = (path: string) => ({ tool: "read", arguments: { path } });

/** Returns the outcomes of a run's calls. */
export const ended = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.type === "tool.ended" ? [{ outcome: event.data.outcome, text: event.data.text }] : []));
