import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { BuildImage } from "../../contract/image/image-verbs.ts";
import type { RuntimeImages } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { ImageVerbs } from "../../verbs/images.ts";

/** The runtime that stores images itself; a container engine has its own store. */
const IMAGE_RUNTIME = "oci";

export function createLocalImages({ runtimes }: { runtimes: RuntimeSet }): ImageVerbs {
  const images = async (): Promise<RuntimeImages> => {
    const { images } = await runtimes.get(IMAGE_RUNTIME);
    if (images === undefined) throw new Error(`the runtime ${IMAGE_RUNTIME} stores no images`);
    return images;
  };
  return {
    async *build(input) {
      const request = parseRequest(BuildImage, input, "an image");
      yield* (await images()).build(request);
    },
    list: async () => (await images()).list(),
    async get(name) {
      const found = (await (await images()).list()).find((image) => image.name === name);
      if (found !== undefined) return found;
      throw new CaissonError("not_found", `there is no image ${JSON.stringify(name)}`, { hint: "`caisson image ls` lists them." });
    },
    remove: async (name) => (await images()).remove(name),
  };
}
