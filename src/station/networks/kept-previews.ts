import { CaissonError } from "../../contract/error/error.ts";
import type { KeptPreview, OpenPreview, PreviewView } from "../../contract/network/network-verbs.ts";
import { noSuchPreview } from "../../contract/network/no-such-preview.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { NetworkVerbs, OpenedPort } from "../../verbs/networks.ts";

/** Each preview holds its sandbox and listens on a port of this machine. */
const PREVIEWS_MAX = 256;
/** The limit of one owner leaves room for others. */
const PREVIEWS_PER_OWNER_MAX = 64;

/** Creates the previews that a process keeps open for its clients. A preview belongs to the sandbox's owner. */
export function createKeptPreviews(
  open: (name: string, request: OpenPreview) => Promise<OpenedPort<PreviewView>>,
  ownerOf: (name: string) => Promise<string>,
): Pick<NetworkVerbs, "keepPreview" | "previews" | "closePreview"> {
  const previews = new Map<string, { view: KeptPreview; port: OpenedPort<PreviewView>; owner: string }>();
  const opening = new Set<{ owner: string }>();
  const check = (owner: string) => {
    const all = [...previews.values(), ...opening];
    const own = all.filter((each) => each.owner === owner).length;
    if (own >= PREVIEWS_PER_OWNER_MAX) throw tooMany(`${owner} already has ${own} open previews, the maximum for one owner`);
    if (all.length >= PREVIEWS_MAX) throw tooMany(`there are already ${all.length} open previews`);
  };
  return {
    async keepPreview(name, request) {
      const coming = { owner: await ownerOf(name) };
      check(coming.owner);
      opening.add(coming);
      try {
        const port = await open(name, request);
        const view = { ...port.view, id: newId("pv"), openedAt: new Date().toISOString() };
        previews.set(view.id, { view, port, ...coming });
        void port.closed.then(async () => {
          if (previews.delete(view.id)) await ignore(port.close(), "it is closed");
        });
        return view;
      } finally {
        opening.delete(coming);
      }
    },
    previews: async () => [...previews.values()].map(({ view }) => view),
    async closePreview(id) {
      const found = previews.get(id);
      if (found === undefined) throw noSuchPreview(id);
      previews.delete(id);
      await found.port.close();
    },
  };
}

function tooMany(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Close some." });
}
