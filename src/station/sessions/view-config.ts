import { AgentDefinition } from "../../contract/agent/agent.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { configOfRun, guardRunConfig } from "../sandboxes/run-config.ts";

export interface ViewOptions {
  runtime: Runtime;
  sessions: SessionStore;
  /** True to show the files that the session started with, instead of the current ones. */
  asBegun?: boolean;
  /** The point to show. Absent: the current files. */
  at?: string;
}

/** Returns the configuration of a sandbox for viewing a session's files. */
export type MakeViewConfig = (session: Session, options: ViewOptions) => Promise<SandboxConfig>;

/**
 * Shares the user's folder without hiding anything, because we compare files with it. What is written in the sandbox is
 * not stored.
 */
export async function configOfView(session: Session, { asBegun = false, at = "now", ...options }: ViewOptions): Promise<SandboxConfig> {
  const hasLayer = !asBegun && (await options.runtime.capabilities()).workspaceLayer;
  const config = configOfSession(asBegun ? { ...session, snapshot: null } : session, { ...options, hasLayer });
  return hasLayer ? SandboxConfig.parse({ ...config, workspace: { ...config.workspace, view: at } }) : config;
}

/** Returns the configuration of a sandbox that changes a session's files. */
export async function configOfWriter(session: Session, options: Pick<ViewOptions, "runtime" | "sessions">): Promise<SandboxConfig> {
  return configOfSession(session, { ...options, hasLayer: (await options.runtime.capabilities()).workspaceLayer });
}

function configOfSession(session: Session, { sessions, hasLayer }: Pick<ViewOptions, "sessions"> & { hasLayer: boolean }): SandboxConfig {
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  const config = configOfRun({ run: "", definition, session, sessions, hasLayer });
  return SandboxConfig.parse({ ...config, keep: false, labels: { viewer: session.id } });
}

/** Returns the same configuration, but hides the parts of the user's folder that the session's own runs do not see. */
export async function guardViewConfig(session: Session, options: ViewOptions & { stateDir: string }): Promise<SandboxConfig> {
  const capabilities = await options.runtime.capabilities();
  const definition = AgentDefinition.parse({ name: "viewer", system: "" });
  const places = { home: "", stateDir: options.stateDir };
  return guardRunConfig(await configOfView(session, options), { definition, session, places, capabilities, notice: () => {} });
}
