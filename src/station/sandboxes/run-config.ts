import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { type Capabilities, SandboxConfig, type WorkspaceMount } from "../../contract/sandbox/sandbox.ts";
import { configFields } from "../../contract/sandbox/sandbox-fields.ts";
import type { Session } from "../../contract/session/session.ts";
import { ownedBy } from "../../contract/token/owner.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import { RUN_LABEL } from "../vocabulary/station-names.ts";
import { checkedMounts, guardWritable, hideCredentials } from "./guard-workspace.ts";

/** Returns the configuration of a run's sandbox. */
export function configOfRun(options: {
  run: string;
  /** Used instead of the run label. */
  labels?: Readonly<Record<string, string>>;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  hasLayer: boolean;
}): SandboxConfig {
  const { definition, session } = options;
  const image = definition.sandbox.image;
  const own = image === undefined ? { kind: "host" as const } : { kind: "image" as const, reference: image };
  const snapshot = session.snapshot?.id ?? definition.sandbox.snapshot;
  return SandboxConfig.parse({
    ...configFields(definition.sandbox),
    template: snapshot === undefined ? own : { kind: "snapshot", id: snapshot },
    workspace: workspaceOf(options),
    keep: true,
    ...ownedBy(session.owner),
    labels: { ...(options.labels ?? { [RUN_LABEL]: options.run }), session: session.id },
  });
}

/**
 * Returns the configuration with guards for the user's folders: hidden credentials and read-only paths. We read the
 * folders each time, since much may have changed since the run started. Throws `invalid`, `unsupported`.
 */
export async function guardRunConfig(
  config: SandboxConfig,
  options: {
    definition: AgentDefinition;
    session: Session;
    places: KnownPlaces;
    capabilities: Capabilities;
    notice: (text: string) => void;
  },
): Promise<SandboxConfig> {
  const { session, places, capabilities, notice } = options;
  const { mountGuard } = options.definition.sandbox;
  const rules = session.source.kind === "folder" ? session.source.hiding : undefined;
  const folders = sharedFolders({ ...config, mounts: [] });
  const hidden = rules === undefined ? config : await hideCredentials(config, { folders, rules, capabilities, notice });
  if (mountGuard === undefined) return hidden;
  const { allowHooks, ...mountRules } = mountGuard;
  const mounts = checkedMounts(config.mounts, places);
  const guarded = await hideCredentials({ ...hidden, mounts }, { folders: mounts, rules: mountRules, capabilities, notice });
  return allowHooks ? guarded : guardWritable(guarded, { places, capabilities });
}

function workspaceOf(options: { session: Session; sessions: SessionStore; hasLayer: boolean }): WorkspaceMount {
  const { layer, lower } = options.sessions.paths(options.session);
  if (options.hasLayer) return { kind: "folder", path: lower, access: "overlay", layer };
  return options.session.snapshot ? { kind: "empty" } : { kind: "folder", path: lower, access: "overlay" };
}
