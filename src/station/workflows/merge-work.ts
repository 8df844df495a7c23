import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { StepOf } from "../../contract/workflow/workflow.ts";
import { defined } from "../../lib/defined.ts";
import { idFrom } from "../../lib/new-id.ts";
import type { MergeVerbs } from "../../verbs/merges.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import { mergeKindFacts } from "../merges/merge-kind-facts.ts";
import { artifactsOf } from "./artifacts.ts";
import { digestOfEffect, type StepOutcome, type StepWork } from "./workflow-kind.ts";
import { workflowKind } from "./workflow-names.ts";

/** Implements merge steps as merges of the station that belong to the workflow. */
export function createMergeWork({ merges, sessions }: { merges: MergeVerbs; sessions: SessionVerbs }): StepWork {
  const idOf = (effect: StepEffect) => idFrom(mergeKindFacts.idPrefix, digestOfEffect(effect.id));
  const isThere = async (id: string) => (await foundOrNull(merges.get(id))) !== null;
  return {
    async start(effect, { facts }) {
      const id = idOf(effect);
      const there = await isThere(id);
      if (effect.cancel === true) {
        if (there) await cancel(merges, id);
        return { status: "cancelled" };
      }
      const step = effect.step as StepOf<"merge">;
      const { sessions: sessionIds } = effect.given as { sessions: string[] };
      const [only] = sessionIds;
      if (sessionIds.length === 1 && only !== undefined) return await mergedTo(only, { merge: null, sessions: sessionIds }, step, sessions);
      if (!there) {
        const { conflicts, agent } = step;
        const request = { sessions: sessionIds, ...defined({ conflicts, agent, model: effect.model ?? step.model }) };
        const parent = `${workflowKind.prefix}${facts.id}`;
        await merges.start(request, { owner: facts.owner, id, parent });
      }
      return { child: `${mergeKindFacts.prefix}${id}` };
    },
    async collect(effect) {
      const id = (effect.child ?? "").slice(mergeKindFacts.prefix.length);
      if (effect.cancel === true) await cancel(merges, id);
      const { finish, text, result, order, conflict } = await merges.get(id);
      if (finish === "completed" && result !== null)
        return await mergedTo(result, { merge: id, sessions: order ?? [] }, effect.step as StepOf<"merge">, sessions);
      if (finish === "cancelled") return { status: "cancelled" };
      const code = conflict === null ? (finish ?? "lost") : "conflict";
      return { status: "failed", error: { code, text: text ?? `the merge ${id} ended as ${finish}` } };
    },
  };
}

async function mergedTo(
  session: string,
  about: { merge: string | null; sessions: string[] },
  step: StepOf<"merge">,
  sessions: SessionVerbs,
): Promise<StepOutcome> {
  return { status: "completed", output: { session, ...about, ...(await artifactsOf(step, session, sessions)) } };
}

/** Cancels a merge. Does nothing if it has ended. */
async function cancel(merges: MergeVerbs, id: string): Promise<void> {
  try {
    await merges.cancel(id, { by: "workflow" });
    await merges.wait(id);
  } catch (error) {
    if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
  }
}
