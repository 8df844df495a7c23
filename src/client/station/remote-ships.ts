import { CaissonError } from "../../contract/error.ts";
import type { ShipVerbs } from "../../station/ships/verbs.ts";
import type { Client } from "../connect.ts";

/** Who says something is said by the token. */
export function remoteShips({ ships }: Pick<Client, "ships">): ShipVerbs {
  return {
    start: (request) => ships.start(request),
    get: (ship) => ships.get(ship),
    list: (options) => ships.list(options),
    events: (ship, options) => ships.events(ship, options),
    async wait(ship, options = {}) {
      try {
        return await ships.wait(ship, options);
      } catch (error) {
        if (options.signal?.aborted) throw new CaissonError("cancelled", `waiting for ${ship} was given up`);
        throw error;
      }
    },
    watch: (ship, request, { signal } = {}) => ships.watch(ship, request, { ...(signal && { signal }) }),
    merge: (ship) => ships.merge(ship),
    pause: (ship, { text }) => ships.pause(ship, text === undefined ? {} : { text }),
    resume: (ship) => ships.resume(ship),
    cancel: (ship) => ships.cancel(ship),
    async remove(ship) {
      await ships.remove(ship);
    },
  };
}
