import type { OwnerView } from "../../contract/owner.ts";
import type { SessionVerbs } from "../sessions/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";
import { isOthers } from "./owned-runs.ts";

export function ownedSessions({ sessions }: Pick<Station, "sessions">, view: OwnerView & { own: OwnThings }): SessionVerbs {
  const { owner, sees, own } = view;
  return decide(sessions, {
    get: async (name) => await sessions.get(await own.session(name)),
    async list(options = {}) {
      if (sees === "everything") return await sessions.list(options);
      if (isOthers(options, owner)) return { sessions: [], damaged: [], next: null };
      // The owner of a damaged one is unknown.
      return { ...(await sessions.list({ ...options, owner })), damaged: [] };
    },
    diff: async (name, options) => await sessions.diff(await own.work(name), options),
    unapplied: async (name) => await sessions.unapplied(await own.session(name)),
    async *patch(name, options) {
      yield* sessions.patch(await own.work(name), options);
    },
    async *changes(name, options) {
      yield* sessions.changes(await own.work(name), options);
    },
    note: async (name, note) => await sessions.note(await own.work(name), note),
    apply: async (name, options) => await sessions.apply(await own.work(name), options),
    applied: async (name, options) => await sessions.applied(await own.work(name), options),
    undo: async (run, options) => await sessions.undo(await own.run(run), options),
    points: async (name) => await sessions.points(await own.session(name)),
    files: async (name, options) => await sessions.files(await own.session(name), options),
    async *readFile(name, options) {
      yield* sessions.readFile(await own.session(name), options);
    },
    fork: async (name, options) => await sessions.fork(await own.session(name), options, { owner }),
    branch: async (name, options) => await sessions.branch(await own.work(name), options),
    discard: async (name, options) => await sessions.discard(await own.session(name), options),
    unlock: async (name, options) => await sessions.unlock(await own.session(name), options),
    async cleanup(options) {
      if (sees === "everything") return await sessions.cleanup(options);
      const ids = (await sessions.list({ owner })).sessions.map(({ id }) => id);
      return await sessions.cleanup({ ...options, only: ids.filter((id) => options.only?.includes(id) ?? true) });
    },
  });
}
