import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SnapshotId } from "../../contract/ids.ts";
import { parseImageReference } from "../../contract/image/image-reference.ts";
import type { RunSettings } from "../../contract/run/run-verbs.ts";
import { startingVariables, startOfTemplate, type TemplateStart } from "../built-templates/template-start.ts";

type Sandbox = AgentDefinition["sandbox"];
/** What a template changes in an agent's sandbox settings. */
type Changes = Partial<Pick<Sandbox, "snapshot" | "runtime" | "env" | "template" | "image">>;

/**
 * Resolves the template that a run starts from: its settings name it, or else the agent. In an agent file, a word that
 * no template has is an image, as it was before templates existed. Throws `not_found`, `unsupported`.
 */
export async function startFromTemplate(
  { sandbox }: AgentDefinition,
  settings: RunSettings,
  { stateDir, owner }: { stateDir: string; owner: string },
): Promise<Changes> {
  if (settings.image !== undefined || settings.snapshot !== undefined) return {};
  const runtime = settings.runtime ?? sandbox.runtime;
  const find = (word: string) => startOfTemplate(stateDir, word, { owner, runtime });
  if (settings.template !== undefined) return changesOf(await find(settings.template), sandbox, settings);
  if (sandbox.template === undefined || sandbox.snapshot !== undefined) return {};
  try {
    return changesOf(await find(sandbox.template), sandbox, settings);
  } catch (error) {
    const isUnknown = error instanceof CaissonError && error.code === "not_found";
    if (!isUnknown || parseImageReference(sandbox.template)?.kind !== "registry") throw error;
    return { image: sandbox.template };
  }
}

function changesOf({ runtime, snapshot, env }: TemplateStart, sandbox: Sandbox, settings: RunSettings): Changes {
  const allowRoot = settings.allowRoot ?? sandbox.allowRoot ?? false;
  return { snapshot: snapshot as SnapshotId, runtime, env: { ...startingVariables(env, { allowRoot }), ...sandbox.env } };
}
