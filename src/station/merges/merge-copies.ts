import { CaissonError } from "../../contract/error/error.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { Station } from "../../verbs/station.ts";
import type { Changes } from "../../workspace/change.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { createSession, type SessionCreation } from "../sessions/create-session.ts";
import { type ForkOptions, planFork } from "../sessions/fork-session.ts";
import { changesOf } from "../sessions/session-changes.ts";
import { digestOf } from "./file-tree.ts";

export interface CopiesOptions extends ForkOptions, SessionCreation {
  sessions: ForkOptions["sessions"];
  identity: SessionCreation["identity"];
  stateDir: string;
  crashpoint: Crashpoint;
  claimName: ClaimName;
  station: Pick<Station, "runs" | "sessions">;
}

/** Handles the sessions of a merge, and the copies that it works on. */
export function createCopies(options: CopiesOptions) {
  const { sessions, station } = options;
  const get = (id: string) => sessions.get(id);
  const changes = async (id: string): Promise<Changes> => await changesOf(await get(id), options);
  /** Returns the changes as they were when the merge started. Throws `conflict` if a session has changed since. */
  const pinnedChanges = async (ids: readonly string[], digests: Readonly<Record<string, string>>): Promise<Changes[]> => {
    const all: Changes[] = [];
    for (const id of ids) {
      const found = await changes(id);
      if (digests[id] !== digestOf(found.changes)) throw changedSince(id);
      all.push(found);
    }
    return all;
  };
  const remove = async (id: string) => {
    if (await sessions.has(id)) await station.sessions.discard(id, { force: true, why: "removed" });
  };
  /** Copies a session under this id. An existing copy is reused if it is complete, and otherwise created again. */
  const copy = async (from: string, id: string, { owner, name }: { owner: string; name?: string }): Promise<Session> => {
    if (await sessions.has(id)) {
      const history = await sessions.history(id);
      const last = history.findLast(({ type }) => type === "session.created" || type === "session.forked");
      if (last?.type === "session.forked" && last.data.from === from) return await get(id);
      if (name !== undefined) throw new CaissonError("exists", `the session ${name} already exists`, { hint: "Choose another name." });
      await remove(id);
    }
    const { session, fill } = await planFork({ session: await get(from), at: null }, options);
    const about = { id, owner, scope: "session", cleanup: "never", ...(name !== undefined && name !== id && { name }) } as const;
    return await createSession(options, { session: { ...session, ...about }, note: `fork_${id}` }, async (newSession) => {
      await fill(newSession);
      return await get(id);
    });
  };
  return { get, changes, pinned: pinnedChanges, remove, copy };
}

export const changedSince = (id: string) =>
  new CaissonError("conflict", `the session ${id} has changed since the merge started`, { hint: "Start another merge." });
