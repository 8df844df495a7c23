import type { Station } from "../../verbs/station.ts";
import { isOthers, type OwnView, ownedGroup } from "./owned-group.ts";

export function ownedSessions(station: Pick<Station, "sessions">, view: OwnView): Station["sessions"] {
  const { sessions } = station;
  const { owner, sees, own } = view;
  return ownedGroup("sessions", station, view, {
    async list(options = {}) {
      if (sees === "everything") return await sessions.list(options);
      if (isOthers(options, owner)) return { sessions: [], damaged: [], next: null };
      // The owner of a damaged session is unknown.
      return { ...(await sessions.list({ ...options, owner })), damaged: [] };
    },
    fork: async (name, options) => await sessions.fork(await own.session(name), options, { owner }),
    async cleanup(options) {
      if (sees === "everything") return await sessions.cleanup(options);
      const ids = (await sessions.list({ owner })).sessions.map(({ id }) => id);
      return await sessions.cleanup({ ...options, only: ids.filter((id) => options.only?.includes(id) ?? true) });
    },
  });
}
