import type { OwnerView } from "../../contract/owner.ts";
import { noSuchPreview } from "../networks/no-such-preview.ts";
import type { NetworkVerbs } from "../networks/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { isThere, type OwnThings } from "./own-things.ts";

export function ownedNetworks({ networks }: Pick<Station, "networks">, { sees, own }: OwnerView & { own: OwnThings }): NetworkVerbs {
  const previews = async () => {
    const all = await networks.previews();
    if (sees === "everything") return all;
    const judged = await Promise.all(all.map(async (preview) => ((await isThere(own.sandbox(preview.sandbox))) ? [preview] : [])));
    return judged.flat();
  };
  return decide(networks, {
    show: async (name) => await networks.show(await own.network(name)),
    change: async (name, change) => await networks.change(await own.network(name), change),
    revoke: async (name, request) => await networks.revoke(await own.network(name), request),
    async *log(name, options) {
      yield* networks.log(await own.network(name), options);
    },
    preview: async (name, request) => await networks.preview(await own.network(name), request),
    keepPreview: async (name, request) => await networks.keepPreview(await own.network(name), request),
    previews,
    async closePreview(id) {
      if (!(await previews()).some((preview) => preview.id === id)) throw noSuchPreview(id);
      await networks.closePreview(id);
    },
    forward: async (name, request, options) => await networks.forward(await own.network(name), request, options),
    ports: async (name) => await networks.ports(await own.network(name)),
    async *watchPorts(name, options) {
      yield* networks.watchPorts(await own.network(name), options);
    },
  });
}
