import { setTimeout as delay } from "node:timers/promises";
import { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import type { Session } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Changes } from "../../workspace/change.ts";
import { findChanges } from "../../workspace/changes.ts";
import { findCommitChanges } from "../../workspace/git/commit-changes.ts";
import type { GitOptions } from "../../workspace/git/host-git.ts";
import type { IgnoredFiles } from "../../workspace/ignore-rules.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { runSpec } from "../runs/run-spec.ts";

/** How long a view waits for another one, which has the layer. */
const VIEW_WAIT_MS_MAX = 20_000;
const VIEW_POLL_MS = 50;

export interface ChangesOptions {
  stateDir: string;
  sessions: SessionStore;
  runtime: (name: string) => Promise<Runtime>;
  git: Pick<GitOptions, "path" | "home">;
  /** Names this process among the holders of a session. */
  identity: { pid: number };
}

/**
 * What changed in a session's workspace, read through a sandbox on it: the one that is running, or one made for the
 * purpose.
 */
export async function changesOf(session: Session, options: ChangesOptions & { ignoring?: IgnoredFiles }): Promise<Changes> {
  // No sandbox was ever on it, or none that got so far as to have files.
  if (session.runtime === null || (session.source.kind === "git" && session.commit === null))
    return { changes: [], leftOut: [], ignored: 0 };
  const runtime = await options.runtime(session.runtime);
  return await withSandbox(session, { ...options, runtime }, (sandbox) => findIn(sandbox, session, { ...options, runtime }));
}

async function findIn(
  sandbox: Sandbox,
  session: Session,
  options: Omit<ChangesOptions, "runtime"> & { runtime: Runtime; ignoring?: IgnoredFiles },
): Promise<Changes> {
  const { sessions, stateDir, git, runtime } = options;
  // An empty workspace has no rules of the user's; those of a repository around the state folder are none of its.
  const ignoring = session.source.kind === "empty" ? { includeIgnored: true } : (options.ignoring ?? {});
  const paths = sessions.paths(session);
  const layer = session.snapshot === null ? (runtime.layerFolder?.(paths.layer) ?? null) : null;
  if (session.source.kind === "git" && session.commit !== null) {
    const { source, commit } = session;
    const folders = await sessions.folders(session.id);
    const preparedAtMs = Date.parse(session.preparedAt ?? session.createdAt);
    return await findCommitChanges({ sandbox, layer, folders, preparedAtMs, stateDir, git, source, commit, ignoring });
  }
  const applied = await sessions.applied(session.id);
  const since = { sinceMs: Date.parse(session.createdAt), applied };
  const hiding = session.source.kind === "folder" ? session.source.hiding : undefined;
  return await findChanges({ sandbox, lower: paths.lower, layer, ...since, stateDir, ignoring, ...defined({ hiding }) });
}

async function withSandbox<Result>(
  session: Session,
  options: Pick<ChangesOptions, "sessions" | "identity"> & { runtime: Runtime },
  work: (sandbox: Sandbox) => Promise<Result>,
): Promise<Result> {
  const { runtime, sessions } = options;
  for (let waitedMs = 0; ; waitedMs += VIEW_POLL_MS) {
    const running = (await runtime.list()).find((info) => info.labels.session === session.id && info.state === "running");
    if (running) {
      const sandbox = await runtime.open(running.id, { serveNetwork: false });
      try {
        return await work(sandbox);
      } finally {
        // It may be gone by now, and what was found counts.
        await sandbox.release().catch(() => undefined);
      }
    }
    try {
      // A layer has one sandbox at a time, so a view holds the session like a run does.
      await using _ = await sessions.lock(session.id, `view_${options.identity.pid}`);
      await using sandbox = await runtime.create(await viewSpec(session, options));
      return await work(sandbox);
    } catch (error) {
      const busy = error instanceof CaissonError && error.code === "conflict" && error.details?.owner !== undefined;
      if (!busy || waitedMs >= VIEW_WAIT_MS_MAX) throw error;
      await delay(VIEW_POLL_MS);
    }
  }
}

async function viewSpec(session: Session, { runtime, sessions }: { runtime: Runtime; sessions: SessionStore }): Promise<SandboxSpec> {
  const { workspaceLayer: hasLayer } = await runtime.capabilities();
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  return SandboxSpec.parse({
    ...runSpec({ run: "", definition, session, sessions, hasLayer }),
    keep: false,
    labels: { viewer: session.id },
  });
}
