import { LOCAL_OWNER } from "../../contract/owner.ts";

/** As records and events have it: absent for the user of this machine, as it was before there were owners. */
export function ownedBy(owner: string = LOCAL_OWNER): { owner?: string } {
  return owner === LOCAL_OWNER ? {} : { owner };
}
