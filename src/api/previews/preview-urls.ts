import type { KeptPreview } from "../../contract/network-verbs.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { Station } from "../../station/station.ts";
import type { PreviewNames } from "./preview-names.ts";

/** The station as callers see it, which names its previews as they are called from elsewhere. */
export function withPreviewUrls(stationFor: (view: OwnerView) => Station, names: PreviewNames | null): (view: OwnerView) => Station {
  if (names === null) return stationFor;
  const named = (preview: KeptPreview): KeptPreview => ({
    ...preview,
    url: `${names.originOf(preview.id)}/?caisson-token=${preview.token}`,
  });
  return (view) => {
    const station = stationFor(view);
    const { networks } = station;
    return {
      ...station,
      networks: {
        ...networks,
        keepPreview: async (name, request) => named(await networks.keepPreview(name, request)),
        previews: async () => (await networks.previews()).map(named),
      },
    };
  };
}
