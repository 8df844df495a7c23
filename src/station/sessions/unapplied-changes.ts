import type { Session } from "../../contract/session/session.ts";
import type { Unapplied } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { countUnapplied } from "../../workspace/count-unapplied.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { lookAtSession } from "./session-changes.ts";

const NOT_KNOWN: Unapplied = { files: null, isMinimum: false };

/** See `SessionVerbs.unapplied`. Counts only changes in a layer on the host, without calling or probing a runtime. */
export async function unappliedOf(
  session: Session,
  { sessions, runtimes, stateDir }: { sessions: SessionStore; runtimes: () => Promise<readonly Runtime[]>; stateDir: string },
): Promise<Unapplied> {
  // It never had a sandbox.
  if (session.runtime === null) return { files: 0, isMinimum: false };
  if ((session.source.kind !== "folder" && session.source.kind !== "upload") || session.snapshot !== null) return NOT_KNOWN;
  const runtime = (await runtimes()).find(({ name }) => name === session.runtime);
  const { layer, lower } = sessions.paths(session);
  // Changes applied on another machine are not in the uploaded folder.
  const applied = session.source.kind === "upload" ? await sessions.readApplied(session.id) : undefined;
  const layers = await runtime?.layerFolders?.(layer);
  if (layers === undefined || layers === null) return NOT_KNOWN;
  const count = () => countUnapplied({ lower, layers, ...defined({ applied }) });
  return (await lookAtSession(session, { stateDir }, count)) ?? NOT_KNOWN;
}
