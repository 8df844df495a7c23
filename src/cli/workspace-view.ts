import { setTimeout as delay } from "node:timers/promises";
import { AgentDefinition } from "../contract/agent.ts";
import { CaissonError } from "../contract/error.ts";
import { SandboxSpec } from "../contract/sandbox.ts";
import type { Session } from "../contract/session.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { runSpec } from "../station/runs/run-sandbox.ts";
import type { Changes } from "../workspace/change.ts";
import { findChanges } from "../workspace/changes.ts";
import { findCommitChanges } from "../workspace/git/commit-changes.ts";
import type { CliContext } from "./context.ts";
import type { LocalStation } from "./station.ts";

/** How long a view waits for another one, which has the layer. */
const VIEW_WAIT_MS_MAX = 20_000;
const VIEW_POLL_MS = 50;
const VIEWER = "view";

export interface SessionView extends Changes {
  session: Session;
}

/** The session of a run, or the session itself. Throws `not_found`. */
export async function findSession(station: LocalStation, name: string): Promise<Session> {
  if (!name.startsWith("run_")) return await station.sessions.get(name);
  const { session } = await station.runs.facts(name);
  return await station.sessions.get(session);
}

/** The newest run's session, when none is named. */
export async function sessionNamed(station: LocalStation, name: string | undefined): Promise<Session> {
  if (name !== undefined) return await findSession(station, name);
  const [newest] = await station.log.streams({ prefix: "run/", limit: 1 });
  if (!newest) throw new CaissonError("not_found", "there is no run yet", { hint: 'Start one: caisson run "…"' });
  return await findSession(station, newest.stream.slice("run/".length));
}

/** What changed in a session's workspace, read through a sandbox on it: the one that is running, or one made for the purpose. */
export async function viewChanges(context: CliContext, station: LocalStation, session: Session): Promise<SessionView> {
  // No sandbox was ever on it, or none that got so far as to have files.
  if (session.runtime === null || (session.source.kind === "git" && session.commit === null)) return { session, changes: [], leftOut: [] };
  const runtime = await context.resolver.resolve(session.runtime);
  const found = await withSandbox(station, session, runtime, (sandbox) => changesOf(context, station, session, sandbox));
  return { session, ...found };
}

async function changesOf(context: CliContext, station: LocalStation, session: Session, sandbox: OwnedSandbox): Promise<Changes> {
  const paths = station.sessions.paths(session);
  const layer = session.snapshot === null ? `${paths.layer}/upper` : null;
  if (session.source.kind === "git" && session.commit !== null) {
    return await findCommitChanges({
      sandbox,
      layer,
      folders: await station.sessions.folders(session.id),
      preparedAtMs: Date.parse(session.preparedAt ?? session.createdAt),
      stateDir: context.stateDir,
      git: { path: context.path, home: context.home },
      source: session.source,
      commit: session.commit,
    });
  }
  const applied = await station.sessions.applied(session.id);
  const { stateDir } = context;
  return await findChanges({ sandbox, lower: paths.lower, layer, sinceMs: Date.parse(session.createdAt), stateDir, applied });
}

async function withSandbox<Result>(
  station: LocalStation,
  session: Session,
  runtime: Runtime,
  work: (sandbox: OwnedSandbox) => Promise<Result>,
): Promise<Result> {
  for (let waitedMs = 0; ; waitedMs += VIEW_POLL_MS) {
    const running = (await runtime.list()).find((info) => info.labels.session === session.id && info.state === "running");
    if (running) return await work(await runtime.open(running.id));
    try {
      // A layer has one sandbox at a time, so a view holds the session like a run does.
      await using _ = await station.sessions.lock(session.id, `${VIEWER}_${process.pid}`);
      await using sandbox = await runtime.create(await viewSpec(station, session, runtime));
      return await work(sandbox);
    } catch (error) {
      const busy = error instanceof CaissonError && error.code === "conflict" && error.details?.owner !== undefined;
      if (!busy || waitedMs >= VIEW_WAIT_MS_MAX) throw error;
      await delay(VIEW_POLL_MS);
    }
  }
}

async function viewSpec(station: LocalStation, session: Session, runtime: Runtime): Promise<SandboxSpec> {
  const { workspaceLayer } = await runtime.capabilities();
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  return SandboxSpec.parse({
    ...runSpec({ run: "", definition, session, sessions: station.sessions, hasLayer: workspaceLayer }),
    keep: false,
    labels: { viewer: session.id },
  });
}
