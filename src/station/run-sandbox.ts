import { setTimeout as delay } from "node:timers/promises";
import type { AgentDefinition } from "../contract/agent.ts";
import { CaissonError } from "../contract/error.ts";
import type { SandboxId, SnapshotId } from "../contract/ids.ts";
import { SandboxSpec, type WorkspaceMount } from "../contract/sandbox.ts";
import type { Session } from "../contract/session.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import type { SessionStore } from "../workspace/sessions.ts";
import type { Crashpoint } from "./crashpoint.ts";

export const RUN_LABEL = "run";

/** Removes a sandbox that died, kept or not, with everything that is left of it. */
export type RemoveRemains = (runtime: Runtime, id: SandboxId) => Promise<void>;

export interface RunSandbox {
  /** Of the run, started or found again. */
  get(): Promise<OwnedSandbox>;
  /** It died: what is left of it is removed, and the next `get` starts another on the same workspace. */
  lost(): Promise<void>;
  /** Ends it, when it was ever started. */
  end(): Promise<void>;
  /** Lets go of it, so that the next owner of the run finds it. */
  release(): Promise<void>;
}

/**
 * The sandbox of a run and all its sub-runs. It is kept, so that it outlives this process, and carries the run's id as a label: whoever takes the run over finds
 * it by that, also when nobody got to write down that it was made.
 */
export function createRunSandbox(options: {
  run: string;
  runtime: Runtime;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  removeRemains: RemoveRemains;
  /** Called once for each sandbox that is new to this process. */
  onReady: (sandbox: OwnedSandbox, why: "start" | "lost" | "resume") => Promise<void>;
  crashpoint: Crashpoint;
}): RunSandbox {
  let current: Promise<OwnedSandbox> | undefined;
  let why: "start" | "lost" = "start";

  const findAgain = async (): Promise<OwnedSandbox | null> => {
    const mine = (await options.runtime.list()).filter((info) => info.labels[RUN_LABEL] === options.run);
    for (const info of mine) {
      try {
        const sandbox = await options.runtime.open(info.id, { serveNetwork: true });
        await sandbox.ping();
        return sandbox;
      } catch (error) {
        // A guest that is slow to answer is not dead.
        if (!(error instanceof CaissonError) || error.retryable) throw error;
        await options.removeRemains(options.runtime, info.id);
        why = "lost";
      }
    }
    return null;
  };
  const open = async (): Promise<OwnedSandbox> => {
    const found = await findAgain();
    if (found) {
      await options.onReady(found, "resume");
      return found;
    }
    options.crashpoint("sandbox.effect");
    const { workspaceLayer } = await options.runtime.capabilities();
    const sandbox = await options.runtime.create(runSpec({ ...options, layer: workspaceLayer }));
    options.crashpoint("sandbox.effect.after");
    const { snapshotGrainMs: grainMs } = options.runtime;
    // What the agent does must be told from what was copied also after a snapshot, see compare-all.ts.
    if (grainMs !== undefined && options.session.snapshot === null) await delay(grainMs - (Date.now() % grainMs));
    await options.onReady(sandbox, why);
    return sandbox;
  };
  return {
    get: () => {
      current ??= open().catch((error: unknown) => {
        current = undefined;
        throw error;
      });
      return current;
    },
    async lost() {
      const sandbox = await current?.catch(() => undefined);
      current = undefined;
      why = "lost";
      await sandbox?.destroy().catch(() => undefined);
    },
    async end() {
      const sandbox = current ? await current.catch(() => null) : await findAgain();
      current = undefined;
      if (!sandbox) return;
      const replaced = await keepFiles(sandbox, options);
      await sandbox.destroy();
      // Only now: the sandbox began from it.
      if (replaced !== null) await options.runtime.removeSnapshot(replaced).catch(() => undefined);
    },
    async release() {
      const sandbox = await current?.catch(() => undefined);
      current = undefined;
      await sandbox?.release().catch(() => undefined);
    },
  };
}

/** A session's snapshots all have this name, so that none is forgotten with it. */
export const snapshotName = (session: string) => `session:${session}`;

/** Where the session's folder has no layer, a snapshot takes the changes over to its next run. Resolves with the one before, which is of no more use. */
async function keepFiles(
  sandbox: OwnedSandbox,
  options: { runtime: Runtime; session: Session; sessions: SessionStore },
): Promise<SnapshotId | null> {
  if ((await options.runtime.capabilities()).workspaceLayer) return null;
  const before = (await options.sessions.get(options.session.id)).snapshot;
  const id = await sandbox.snapshot({ name: snapshotName(options.session.id) });
  await options.sessions.update(options.session.id, { snapshot: { id, runtime: options.runtime.name } });
  return before?.id ?? null;
}

/** What a run's sandbox is made of. */
export function runSpec(options: {
  run: string;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  layer: boolean;
}): SandboxSpec {
  const { definition, session } = options;
  const image = definition.sandbox.image;
  const own = image === undefined ? { kind: "host" as const } : { kind: "image" as const, reference: image };
  return SandboxSpec.parse({
    template: session.snapshot ? { kind: "snapshot", id: session.snapshot.id } : own,
    workspace: workspaceOf(options),
    limits: definition.sandbox.limits,
    env: definition.sandbox.env,
    network: definition.sandbox.network,
    secrets: definition.sandbox.secrets,
    gateway: definition.sandbox.gateway,
    allowRoot: definition.sandbox.allowRoot,
    keep: true,
    labels: { [RUN_LABEL]: options.run, session: session.id },
  });
}

function workspaceOf(options: { session: Session; sessions: SessionStore; layer: boolean }): WorkspaceMount {
  const { layer, lower } = options.sessions.paths(options.session);
  if (options.layer) return { kind: "folder", path: lower, access: "overlay", layer };
  return options.session.snapshot ? { kind: "empty" } : { kind: "folder", path: lower, access: "overlay" };
}
