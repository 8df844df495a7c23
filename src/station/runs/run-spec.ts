import type { AgentDefinition } from "../../contract/agent.ts";
import { ownedBy } from "../../contract/owner.ts";
import { type Capabilities, SandboxSpec, type WorkspaceMount } from "../../contract/sandbox.ts";
import type { Session } from "../../contract/session.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import { checkedMounts, guardWritable, hideCredentials } from "../sandboxes/guard-workspace.ts";

export const RUN_LABEL = "run";

/** What a run's sandbox is made of. */
export function runSpec(options: {
  run: string;
  /** Instead of that it is this run's. */
  labels?: Readonly<Record<string, string>>;
  definition: AgentDefinition;
  session: Session;
  sessions: SessionStore;
  hasLayer: boolean;
}): SandboxSpec {
  const { definition, session } = options;
  const image = definition.sandbox.image;
  const own = image === undefined ? { kind: "host" as const } : { kind: "image" as const, reference: image };
  const snapshot = session.snapshot?.id ?? definition.sandbox.snapshot;
  return SandboxSpec.parse({
    template: snapshot === undefined ? own : { kind: "snapshot", id: snapshot },
    workspace: workspaceOf(options),
    mounts: definition.sandbox.mounts,
    limits: definition.sandbox.limits,
    env: definition.sandbox.env,
    network: definition.sandbox.network,
    secrets: definition.sandbox.secrets,
    gateway: definition.sandbox.gateway,
    stationAccess: definition.sandbox.stationAccess,
    allowRoot: definition.sandbox.allowRoot,
    keep: true,
    ...ownedBy(session.owner),
    labels: { ...(options.labels ?? { [RUN_LABEL]: options.run }), session: session.id },
  });
}

/**
 * The same without what its sandbox is not to see or change of the user's folders. They are looked at each time: much
 * may have changed since the run began. Throws `invalid`, `unsupported`.
 */
export async function guardedRunSpec(
  spec: SandboxSpec,
  options: {
    definition: AgentDefinition;
    session: Session;
    places: KnownPlaces;
    capabilities: Capabilities;
    notice: (text: string) => void;
  },
): Promise<SandboxSpec> {
  const { session, places, capabilities, notice } = options;
  const { mountGuard } = options.definition.sandbox;
  const rules = session.source.kind === "folder" ? session.source.hiding : undefined;
  const folders = sharedFolders({ ...spec, mounts: [] });
  const hidden = rules === undefined ? spec : await hideCredentials(spec, { folders, rules, capabilities, notice });
  if (mountGuard === undefined) return hidden;
  const { allowHooks, ...mountRules } = mountGuard;
  const mounts = checkedMounts(spec.mounts, places);
  const guarded = await hideCredentials({ ...hidden, mounts }, { folders: mounts, rules: mountRules, capabilities, notice });
  return allowHooks ? guarded : guardWritable(guarded, { places, capabilities });
}

function workspaceOf(options: { session: Session; sessions: SessionStore; hasLayer: boolean }): WorkspaceMount {
  const { layer, lower } = options.sessions.paths(options.session);
  if (options.hasLayer) return { kind: "folder", path: lower, access: "overlay", layer };
  return options.session.snapshot ? { kind: "empty" } : { kind: "folder", path: lower, access: "overlay" };
}
