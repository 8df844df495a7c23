import { CaissonError } from "../../contract/error.ts";
import type { KeptPreview, OpenPreview, PreviewView } from "../../contract/network-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import { noSuchPreview } from "./no-such-preview.ts";
import type { NetworkVerbs, OpenedPort } from "./verbs.ts";

/** Each holds its sandbox and listens on a port of this machine. */
const PREVIEWS_MAX = 256;
/** Of one owner, so that others have room. */
const PREVIEWS_PER_OWNER_MAX = 64;

/** The previews that a process keeps open for others. A preview is of the sandbox's owner. */
export function createKeptPreviews(
  open: (name: string, request: OpenPreview) => Promise<OpenedPort<PreviewView>>,
  ownerOf: (name: string) => Promise<string>,
): Pick<NetworkVerbs, "keepPreview" | "previews" | "closePreview"> {
  const kept = new Map<string, { view: KeptPreview; port: OpenedPort<PreviewView>; owner: string }>();
  const opening = new Set<{ owner: string }>();
  const check = (owner: string) => {
    const all = [...kept.values(), ...opening];
    const own = all.filter((each) => each.owner === owner).length;
    if (own >= PREVIEWS_PER_OWNER_MAX) throw tooMany(`${owner} has ${own} previews open already, as many as one owner may have`);
    if (all.length >= PREVIEWS_MAX) throw tooMany(`${all.length} previews are open already`);
  };
  return {
    async keepPreview(name, request) {
      const coming = { owner: await ownerOf(name) };
      check(coming.owner);
      opening.add(coming);
      try {
        const port = await open(name, request);
        const view = { ...port.view, id: newId("pv"), openedAt: new Date().toISOString() };
        kept.set(view.id, { view, port, ...coming });
        void port.closed.then(async () => {
          if (kept.delete(view.id)) await port.close().catch(() => {});
        });
        return view;
      } finally {
        opening.delete(coming);
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

function tooMany(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Close some." });
}
