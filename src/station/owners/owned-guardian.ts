import type { OwnerView } from "../../contract/owner.ts";
import type { GuardianVerbs } from "../guardian/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";

/** What the guardian may do is the station's; what it sees in runs and did about them is their owners'. */
export function ownedGuardian(
  { guardian }: Pick<Station, "guardian">,
  { owner, sees, own }: OwnerView & { own: OwnThings },
): GuardianVerbs {
  return decide(guardian, {
    async status() {
      const status = await guardian.status();
      return sees === "everything" ? status : { ...status, runs: status.runs.filter((run) => run.owner === owner) };
    },
    async log({ run, ...asked } = {}) {
      const found = run === undefined ? {} : { run: await own.run(run) };
      return await guardian.log({ ...asked, ...found, ...(sees === "own" && { owner }) });
    },
    explain: async (run) => await guardian.explain(await own.run(run)),
  });
}
