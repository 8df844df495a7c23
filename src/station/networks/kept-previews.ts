import { CaissonError } from "../../contract/error.ts";
import type { KeptPreview, OpenPreview, PreviewView } from "../../contract/network-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import { noSuchPreview } from "./no-such-preview.ts";
import type { NetworkVerbs, OpenedPort } from "./verbs.ts";

/** Each holds its sandbox and listens on a port of this machine. */
const PREVIEWS_MAX = 256;

/** The previews that a process keeps open for others. */
export function createKeptPreviews(
  open: (name: string, request: OpenPreview) => Promise<OpenedPort<PreviewView>>,
): Pick<NetworkVerbs, "keepPreview" | "previews" | "closePreview"> {
  const kept = new Map<string, { view: KeptPreview; port: OpenedPort<PreviewView> }>();
  let opening = 0;
  return {
    async keepPreview(name, request) {
      if (kept.size + opening >= PREVIEWS_MAX) {
        throw new CaissonError("busy", `${PREVIEWS_MAX} previews are open already`, { hint: "Close some." });
      }
      opening += 1;
      try {
        const port = await open(name, request);
        const view = { ...port.view, id: newId("pv"), openedAt: new Date().toISOString() };
        kept.set(view.id, { view, port });
        void port.closed.then(async () => {
          if (kept.delete(view.id)) await port.close().catch(() => {});
        });
        return view;
      } finally {
        opening -= 1;
      }
    },
    previews: async () => [...kept.values()].map(({ view }) => view),
    async closePreview(id) {
      const found = kept.get(id);
      if (found === undefined) throw noSuchPreview(id);
      kept.delete(id);
      await found.port.close();
    },
  };
}
