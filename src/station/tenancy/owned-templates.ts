import type { Station } from "../../verbs/station.ts";
import { isOthers, type OwnView, ownedGroup } from "./owned-group.ts";

/** Templates and the build cache belong to owners: another owner's template does not exist for a caller. */
export function ownedTemplates(station: Pick<Station, "templates">, view: OwnView): Station["templates"] {
  const { templates } = station;
  const { owner, sees } = view;
  const whose = sees === "everything" ? {} : { owner };
  return ownedGroup("templates", station, view, {
    build: (request) => templates.build({ ...request, owner }),
    import: (request) => templates.import({ ...request, owner }),
    async list(query = {}) {
      if (sees === "everything") return await templates.list(query);
      return isOthers(query, owner) ? [] : await templates.list({ ...query, owner });
    },
    get: async (word) => await templates.get(word, whose),
    tag: async (word, request) => await templates.tag(word, { ...request, ...whose }),
    remove: async (word) => await templates.remove(word, whose),
    export: (word) => templates.export(word, whose),
  });
}
