import type { OwnerView } from "../../contract/owner.ts";
import type { SecretVerbs } from "../secrets/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { isOthers } from "./owned-runs.ts";

export function ownedSecrets({ secrets }: Pick<Station, "secrets">, { owner, sees }: OwnerView): SecretVerbs {
  const whose = (options: { owner?: string }) => ({ owner: sees === "everything" ? (options.owner ?? owner) : owner });
  return decide(secrets, {
    set: async (name, request, options = {}) => await secrets.set(name, request, whose(options)),
    async list(options = {}) {
      if (sees === "everything") return await secrets.list(options);
      return isOthers(options, owner) ? [] : await secrets.list({ owner });
    },
    remove: async (name, options = {}) => await secrets.remove(name, whose(options)),
  });
}
