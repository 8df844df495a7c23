import type { Basis } from "../details.ts";
import type { Identity } from "../identity/identity.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { sandboxUser } from "../template/etc-files.ts";
import { type PlaceLayer, storedLayer } from "./layers.ts";
import type { Part } from "./parts.ts";

/** Returns records that mount the home folder over the root's. */
export function homeRecords(part: Part | null, options: { identity: Identity; basis: Basis; place: PlaceLayer }): PlanRecord[] {
  if (part === null) return [];
  const { homeLayers } = options.basis;
  const own = options.place(part, { owner: 1000 });
  const names = [...own.names, ...homeLayers.map((_, index) => `home-${index}`)];
  return [
    ...own.records,
    ...homeLayers.flatMap((dir, index) => storedLayer(`home-${index}`, dir, options.identity)),
    ["home", names.join(":"), own.upper, own.work, sandboxUser.home],
  ];
}
