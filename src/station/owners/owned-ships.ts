import { noDriven } from "../../contract/driven.ts";
import { CaissonError } from "../../contract/error.ts";
import type { OwnerView } from "../../contract/owner.ts";
import { isIdPrefix, oneOf } from "../names/one-of.ts";
import { shipNames } from "../ships/ship-names.ts";
import type { ShipVerbs } from "../ships/verbs.ts";
import type { SpecVerbs } from "../specs/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";

export function ownedShips(
  { ships }: Pick<Station, "ships">,
  { owner, sees, own, specs }: OwnerView & { own: OwnThings; specs: Pick<SpecVerbs, "get"> },
): ShipVerbs {
  /** A session, a run in it, a spec, or a ship, of those that the owner sees. */
  const work = async (word: string): Promise<string> => {
    if (isIdPrefix("ship", word)) return await find(word);
    const spec = async () => (await specs.get(word)).spec;
    if (isIdPrefix("spec", word)) return await spec();
    try {
      return await own.session(word);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return await spec().catch((other: unknown) => {
        throw isNotFound(other) ? error : other;
      });
    }
  };
  const find = async (word: string): Promise<string> => {
    if (sees === "everything") return (await ships.get(word)).id;
    const mine = (await ships.list({ owner })).items.filter(({ id }) => id.startsWith(word));
    return oneOf(word, mine, { what: shipNames.name, listedBy: shipNames.listedBy });
  };
  return decide(ships, {
    start: async (request) => await ships.start({ ...request, of: await work(request.of) }, { owner }),
    get: async (ship) => await ships.get(await find(ship)),
    async list(options = {}) {
      if (sees === "everything") return await ships.list(options);
      return options.owner !== undefined && options.owner !== owner ? noDriven : await ships.list({ ...options, owner });
    },
    async *events(ship, options) {
      yield* ships.events(await find(ship), options);
    },
    wait: async (ship, options) => await ships.wait(await find(ship), options),
    watch: async (ship, request, options) => await ships.watch(await find(ship), request, options),
    merge: async (ship, options) => await ships.merge(await find(ship), options),
    resume: async (ship, options) => await ships.resume(await find(ship), options),
    pause: async (ship, options) => await ships.pause(await find(ship), options),
    cancel: async (ship, options) => await ships.cancel(await find(ship), options),
    remove: async (ship) => await ships.remove(await find(ship)),
  });
}

const isNotFound = (error: unknown) => error instanceof CaissonError && error.code === "not_found";
