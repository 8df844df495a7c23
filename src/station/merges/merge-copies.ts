import { CaissonError } from "../../contract/error.ts";
import type { Session } from "../../contract/session.ts";
import type { Changes } from "../../workspace/change.ts";
import type { Crashpoint } from "../crashpoint.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { createSession, type RunCreation } from "../runs/new-run.ts";
import { type ForkOptions, planFork } from "../sessions/fork-session.ts";
import { changesOf } from "../sessions/session-changes.ts";
import type { Station } from "../station.ts";
import { digestOf } from "./file-tree.ts";

export interface CopiesOptions extends ForkOptions, RunCreation {
  sessions: ForkOptions["sessions"];
  identity: RunCreation["identity"];
  stateDir: string;
  crashpoint: Crashpoint;
  claimName: ClaimName;
  station: Pick<Station, "runs" | "sessions">;
}

/** The sessions that a merge is of, and the copies that it works on. */
export function createCopies(options: CopiesOptions) {
  const { sessions, station } = options;
  const get = (id: string) => sessions.get(id);
  const changes = async (id: string): Promise<Changes> => await changesOf(await get(id), options);
  /** As they were when the merge began. Throws `conflict`. */
  const pinned = async (ids: readonly string[], digests: Readonly<Record<string, string>>): Promise<Changes[]> => {
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
  /** A copy of a session under this id; one that is there already is whole or made anew. */
  const copy = async (from: string, id: string, { owner, name }: { owner: string; name?: string }): Promise<Session> => {
    if (await sessions.has(id)) {
      const history = await sessions.history(id);
      const last = history.findLast(({ type }) => type === "session.created" || type === "session.forked");
      if (last?.type === "session.forked" && last.data.from === from) return await get(id);
      if (name !== undefined) throw new CaissonError("exists", `there is a session ${name} already`, { hint: "Choose another name." });
      await remove(id);
    }
    const { session, fill } = await planFork({ session: await get(from), at: null }, options);
    const about = { id, owner, scope: "session", cleanup: "never", ...(name !== undefined && name !== id && { name }) } as const;
    return await createSession(options, { session: { ...session, ...about }, note: `fork_${id}` }, async (made) => {
      await fill(made);
      return await get(id);
    });
  };
  return { get, changes, pinned, remove, copy };
}

export const changedSince = (id: string) =>
  new CaissonError("conflict", `the session ${id} has changed since the merge began`, { hint: "Begin another merge." });
