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
    remove: async (name) => (await images()).remove(name),
  };
}
