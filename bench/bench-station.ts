import { mkdtemp } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { createScriptedModel, type Script } from "../src/agent/model/scripted-model.ts";
import { AgentDefinition } from "../src/contract/agent/agent.ts";
import { noCrash } from "../src/lib/crashpoint.ts";
import type { Log, StoredEvent } from "../src/log/log.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { createOciRuntime } from "../src/runtimes/oci/runtime.ts";
import type { Runtime } from "../src/sandbox/runtime.ts";
import { createStore } from "../src/sandbox/store.ts";
import { createRuns } from "../src/station/runs/runs.ts";
import { runStream } from "../src/station/vocabulary/station-names.ts";
import { createSessionStore } from "../src/workspace/sessions.ts";

const guestPath = join(import.meta.dirname, "..", "guest", "build", "caisson-guest");

/** Executes runs with scripted models on one log and one runtime. */
export interface BenchStation extends AsyncDisposable {
  log: Log;
  runtime: Runtime;
  stateDir: string;
  /** Drives a run to its end and returns its events. */
  run(script: Script, options?: { folder?: string; steps?: number }): Promise<StoredEvent[]>;
  layerOf(events: readonly StoredEvent[]): string;
}

export async function openBenchStation(dir: string, makeRuntime: (stateDir: string) => Runtime): Promise<BenchStation> {
  const stateDir = await mkdtemp(join(dir, "station-"));
  const log = createSqliteLog({ path: join(stateDir, "log.db") });
  const identity = { ...createStore({ stateDir }).thisProcess(), host: "bench" };
  const alive = () => true;
  const sessions = createSessionStore({ stateDir, log, identity, alive });
  const runtime = makeRuntime(stateDir);
  let number = 0;
  return {
    log,
    runtime,
    stateDir,
    layerOf: ([created]) => join(stateDir, "sessions", String((created?.data as { session?: string } | undefined)?.session), "layer"),
    async run(script, options = {}) {
      number += 1;
      const id = `s${number}`;
      const source = options.folder === undefined ? { kind: "empty" as const } : { kind: "folder" as const, path: options.folder };
      await sessions.create({ id, source, scope: "session", cleanup: "never" });
      const model = createScriptedModel(script);
      const removeRemains = async () => undefined;
      const runs = createRuns({
        log,
        sessions,
        identity,
        alive,
        runtime: async () => runtime,
        model: async () => model,
        agent: async (name) => AgentDefinition.parse({ name, system: "" }),
        crashpoint: noCrash,
        places: { home: "/nowhere", stateDir },
        removeRemains,
        claimName: async () => ({ async [Symbol.asyncDispose]() {} }),
      });
      const definition = AgentDefinition.parse({
        name: "bench",
        system: "You work.",
        harness: { maxSteps: options.steps ?? 100_000, compaction: { enabled: false } },
      });
      const run = await runs.create({ definition, task: "work", model: "scripted", session: id });
      await runs.drive(run, { signal: new AbortController().signal });
      return await log.read(runStream(run), { limit: 100_000 });
    },
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await log[Symbol.asyncDispose]();
    },
  };
}

export const oci = (stateDir: string) =>
  createOciRuntime({ stateDir, guestPath }, { home: homedir(), path: process.env.PATH ?? "", ociRuntime: "crun" });
