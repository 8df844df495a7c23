import type { KeptPreview } from "../../contract/network/network-verbs.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import type { Station } from "../../verbs/station.ts";
import type { PreviewNames } from "./preview-names.ts";

/** Wraps the stations of callers, so that they return previews with their public URLs. */
export function withPreviewUrls(stationFor: (view: OwnerView) => Station, names: PreviewNames | null): (view: OwnerView) => Station {
  if (names === null) return stationFor;
  const withUrl = (preview: KeptPreview): KeptPreview => ({
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
        keepPreview: async (name, request) => withUrl(await networks.keepPreview(name, request)),
        previews: async () => (await networks.previews()).map(withUrl),
      },
    };
  };
}
