import { parseRequest } from "../../contract/error/parse-request.ts";
import type { Session } from "../../contract/session/session.ts";
import { type DamagedSession, ListSessions } from "../../contract/session/session-verbs.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import { pageOf } from "../pages.ts";

/** See `SessionVerbs.list`. If the request names ids, reads only those records. */
export async function listSessions(
  request: ListSessions,
  sessions: SessionStore,
): Promise<{ sessions: Session[]; damaged: DamagedSession[]; next: string | null }> {
  const query = parseRequest(ListSessions, request, "a list of sessions");
  const { sessions: found, damaged } = query.id === undefined ? await sessions.listAll() : await sessionsById(query.id, sessions);
  const { cursor, limit } = query;
  const endOf = ({ lastUsedAt, id }: Session) => [lastUsedAt, id] as const;
  const passing = found.filter((session) => passes(session, query));
  const { items, next } = pageOf(passing, { what: "sessions", endOf, newestFirst: true, cursor, limit });
  return { sessions: items, damaged: cursor === undefined ? damaged : [], next };
}

async function sessionsById(ids: readonly string[], sessions: SessionStore): Promise<{ sessions: Session[]; damaged: DamagedSession[] }> {
  const found = await Promise.all([...new Set(ids)].map((id) => sessions.get(id).catch(ifUnusable)));
  return { sessions: found.filter((session) => session !== null), damaged: [] };
}

function passes(session: Session, { runtime, scope, owner, ...times }: ListSessions): boolean {
  const within = (at: string, { from, before }: { from: string | undefined; before: string | undefined }) =>
    (from === undefined || Date.parse(at) >= Date.parse(from)) && (before === undefined || Date.parse(at) < Date.parse(before));
  return (
    (runtime === undefined || session.runtime === runtime) &&
    (scope === undefined || session.scope === scope) &&
    (owner === undefined || session.owner === owner) &&
    within(session.createdAt, { from: times.createdAfter, before: times.createdBefore }) &&
    within(session.lastUsedAt, { from: times.usedAfter, before: times.usedBefore })
  );
}
