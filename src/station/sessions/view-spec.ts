import { AgentDefinition } from "../../contract/agent.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import type { Session } from "../../contract/session.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { guardedRunSpec, runSpec } from "../runs/run-spec.ts";

export interface ViewOptions {
  runtime: Runtime;
  sessions: SessionStore;
  /** What the session began from, instead of what became of it. */
  asBegun?: boolean;
}

/** What a sandbox is made of through which somebody looks at the files of a session. */
export type MakeViewSpec = (session: Session, options: ViewOptions) => Promise<SandboxSpec>;

/** With everything that is in the user's folder: what is compared with that must be seen. */
export async function viewSpec(session: Session, { runtime, sessions, asBegun = false }: ViewOptions): Promise<SandboxSpec> {
  const hasLayer = !asBegun && (await runtime.capabilities()).workspaceLayer;
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  return SandboxSpec.parse({
    ...runSpec({ run: "", definition, session: asBegun ? { ...session, snapshot: null } : session, sessions, hasLayer }),
    keep: false,
    labels: { viewer: session.id },
  });
}

/** The same without what the session's own runs do not see of the user's folder. */
export async function guardedViewSpec(session: Session, options: ViewOptions & { stateDir: string }): Promise<SandboxSpec> {
  const capabilities = await options.runtime.capabilities();
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  const places = { home: "", stateDir: options.stateDir };
  return guardedRunSpec(await viewSpec(session, options), { definition, session, places, capabilities, notice: () => {} });
}
