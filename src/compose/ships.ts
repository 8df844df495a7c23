import type { ShipKind } from "../station/ships/ship-kind.ts";
import type { ShipVerbs } from "../station/ships/verbs.ts";
import type { SpecVerbs } from "../station/specs/verbs.ts";
import type { DrivenParts } from "./driven.ts";

/** Ships: what drives them, and what is done with them. */
export async function openShips(
  { local, station, driver, settings }: DrivenParts,
  specs: Pick<SpecVerbs, "get">,
): Promise<{ kind: ShipKind; verbs: ShipVerbs }> {
  const [
    { createShipKind },
    { createReach },
    { createLocalShips },
    { createDrivenThings },
    { requestOutbound },
    { secretsOf },
    { workOfSession },
  ] = await Promise.all([
    import("../station/ships/ship-kind.ts"),
    import("../station/ships/ship-reach.ts"),
    import("../station/ships/local-ships.ts"),
    import("../station/driven/driven-verbs.ts"),
    import("../network/outbound/request-outbound.ts"),
    import("./local-station.ts"),
    import("../station/sessions/changed-work.ts"),
  ]);
  const { stateDir, config } = settings;
  const { log, crashpoint } = local;
  const git = { path: settings.path };
  const secrets = (owner: string) => secretsOf(settings, owner);
  const reach = createReach({ git, locks: { stateDir, crashpoint }, send: requestOutbound, now: Date.now, secretsOf: secrets });
  // As it is now, and at no step before.
  const filesAfter = async () => null;
  const workOf = async (session: string) => workOfSession(await local.sessions.get(session), { ...local, ...local.reading, filesAfter });
  const kind = createShipKind({ stateDir, git, reach, workOf, now: () => new Date() });
  const things = createDrivenThings(kind, { log, driver, crashpoint, openPerOwnerMax: config.station.jobsPerOwnerMax });
  const { runs, sessions } = station;
  return { kind, verbs: createLocalShips(things, { runs, sessions, specs, secretsOf: secrets, author: config.author }) };
}
