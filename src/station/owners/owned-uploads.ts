import type { OwnerView } from "../../contract/owner.ts";
import type { Station } from "../station.ts";
import { noSuchUpload } from "../uploads/no-such-upload.ts";
import type { UploadVerbs } from "../uploads/verbs.ts";
import { decide } from "./decide.ts";

export function ownedUploads({ uploads }: Pick<Station, "uploads">, { owner, sees }: OwnerView): UploadVerbs {
  const isSeen = (upload: { owner: string }) => sees === "everything" || upload.owner === owner;
  const get: UploadVerbs["get"] = async (id) => {
    const found = await uploads.get(id);
    if (!isSeen(found)) throw noSuchUpload(id);
    return found;
  };
  return decide(uploads, {
    put: async (archive, options = {}) => await uploads.put(archive, { ...options, owner }),
    list: async (options) => (await uploads.list(options)).filter(isSeen),
    get,
    remove: async (id) => await uploads.remove((await get(id)).id),
    // What nothing used for a while goes, whoever looks.
    sweep: "shared",
  });
}
