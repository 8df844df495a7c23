import { BuildImage } from "../../contract/image-verbs.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { RuntimeImages } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { ImageVerbs } from "./verbs.ts";

/** The runtime that keeps images itself; an engine has its own. */
const IMAGE_RUNTIME = "oci";

export function createLocalImages({ runtimes }: { runtimes: RuntimeSet }): ImageVerbs {
  const images = async (): Promise<RuntimeImages> => {
    const { images } = await runtimes.get(IMAGE_RUNTIME);
    if (images === undefined) throw new Error(`the runtime ${IMAGE_RUNTIME} keeps no images`);
    return images;
  };
  return {
    async *build(given) {
      const request = parseRequest(BuildImage, given, "an image");
      yield* (await images()).build(request);
    },
    list: async () => (await images()).list(),
    remove: async (name) => (await images()).remove(name),
  };
}
