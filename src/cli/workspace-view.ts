import { CaissonError } from "../contract/error.ts";
import { SandboxSpec } from "../contract/sandbox.ts";
import type { Session } from "../contract/session.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { runSpec } from "../station/run-sandbox.ts";
import type { Change } from "../workspace/change.ts";
import { findChanges } from "../workspace/changes.ts";
import type { CliContext } from "./context.ts";
import type { LocalStation } from "./station.ts";

export interface SessionView {
  session: Session;
  changes: Change[];
}

/** The session of a run, or the session itself. Throws `not_found`. */
export async function findSession(station: LocalStation, name: string): Promise<Session> {
  if (!name.startsWith("run_")) return await station.sessions.get(name);
  const state = await station.runs.state(name);
  return await station.sessions.get(state.session);
}

/** The newest run's session, when none is named. */
export async function sessionNamed(station: LocalStation, name: string | undefined): Promise<Session> {
  if (name !== undefined) return await findSession(station, name);
  const [newest] = await station.log.streams({ prefix: "run/", limit: 1 });
  if (!newest) throw new CaissonError("not_found", "There is no run yet.", { hint: 'Start one: caisson run "…"' });
  return await findSession(station, newest.stream.slice("run/".length));
}

/** What changed in a session's workspace, read through a sandbox on it: the one that is running, or one made for the purpose. */
export async function viewChanges(context: CliContext, station: LocalStation, session: Session): Promise<SessionView> {
  const { layer, lower } = station.sessions.paths(session);
  return await withSandbox(context, station, session, async (sandbox) => ({
    session,
    changes: await findChanges({ sandbox, lower, layer: session.snapshot === null ? `${layer}/upper` : null }),
  }));
}

async function withSandbox<Result>(
  context: CliContext,
  station: LocalStation,
  session: Session,
  work: (sandbox: OwnedSandbox) => Promise<Result>,
): Promise<Result> {
  const runtime = await context.resolver.resolve(session.snapshot?.runtime ?? context.config.runtime);
  const running = (await runtime.list()).find((info) => info.labels.session === session.id && info.state === "running");
  if (running) return await work(await runtime.open(running.id));
  const { workspaceLayer } = await runtime.capabilities();
  const { AgentDefinition } = await import("../contract/agent.ts");
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  const spec = SandboxSpec.parse({
    ...runSpec({ run: "", definition, session, sessions: station.sessions, layer: workspaceLayer }),
    keep: false,
    labels: { viewer: session.id },
  });
  await using sandbox = await runtime.create(spec);
  return await work(sandbox);
}
