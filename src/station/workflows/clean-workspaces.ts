import { JOB_LABEL } from "../../contract/label/station-labels.ts";
import type { Session } from "../../contract/session/session.ts";
import { CLEANED_SESSIONS_MAX } from "../../contract/workflow/workflow-event.ts";
import { defined } from "../../lib/defined.ts";
import type { MergeVerbs } from "../../verbs/merges.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { CleanEffect } from "../../workflow/turn.ts";
import { ifUnusable } from "../../workspace/sessions.ts";
import type { EffectContext } from "../durable/kind.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { type CleanupOptions, removeWithWorkflow } from "../sessions/session-cleanup.ts";
import { sessionOf } from "./agent-work.ts";
import { untilLeft } from "./free-session.ts";
import { workflowKind } from "./workflow-names.ts";

const PAGE = 1000;

export interface CleanWorkspacesOptions extends CleanupOptions {
  runs: Pick<RunVerbs, "list">;
  merges: Pick<MergeVerbs, "list" | "get">;
}

/**
 * Removes the workspaces that go with an instance, at its end: the shared one if it is the root, those of single
 * agents, and those that its merges created. Resolves with their sessions, at most as many as an event names. A
 * workspace in use stays until the next start.
 */
export async function cleanWorkspaces(
  effect: CleanEffect,
  { facts, signal }: Pick<EffectContext, "facts" | "signal">,
  options: CleanWorkspacesOptions,
): Promise<string[]> {
  const stream = `${workflowKind.prefix}${facts.id}`;
  const { hasCompleted, cleanup } = effect;
  const removed: string[] = [];
  const remove = async (id: string, decide: (session: Session) => Session["cleanup"], run?: string) => {
    const session = await options.sessions.get(id).catch(ifUnusable);
    if (session === null || session.owner !== facts.owner) return;
    const policy = decide(session);
    if (policy === "never") return;
    if (run !== undefined) await untilLeft(run, () => options.sessions.lockOf(id), signal);
    if (await removeWithWorkflow({ id, cleanup: policy }, { ...options, hasCompleted })) removed.push(id);
  };
  for await (const { run, session } of runsOf(stream, options)) if (run === session) await remove(session, (own) => own.cleanup, run);
  for await (const id of mergedIn(stream, options)) await remove(id, () => cleanup ?? "never");
  if (effect.root === stream) await remove(sessionIdOf(sessionOf(stream), facts.owner), (own) => cleanup ?? own.cleanup);
  return removed.slice(0, CLEANED_SESSIONS_MAX);
}

/** Yields the runs of an instance. A session that was created for a run has its id. */
async function* runsOf(stream: string, { runs }: CleanWorkspacesOptions): AsyncGenerator<{ run: string; session: string }> {
  for (let cursor: string | undefined; ; ) {
    const page = await runs.list({ label: [`${JOB_LABEL}=${stream}`], limit: PAGE, ...defined({ cursor }) });
    yield* page.runs;
    if (page.next === null) return;
    cursor = page.next;
  }
}

async function* mergedIn(stream: string, { merges }: CleanWorkspacesOptions): AsyncGenerator<string> {
  for (let cursor: string | undefined; ; ) {
    const page = await merges.list({ parent: stream, limit: PAGE, ...defined({ cursor }) });
    for (const { id } of page.items) {
      const { result } = await merges.get(id);
      if (result !== null) yield result;
    }
    if (page.next === null) return;
    cursor = page.next;
  }
}
