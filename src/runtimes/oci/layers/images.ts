import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { ImageView } from "../../../contract/image/image-verbs.ts";
import type { RuntimeImages } from "../../../sandbox/runtime.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { bootstrapDebian } from "../template/bootstrap-debian.ts";
import { builtImages } from "../template/built-images.ts";
import { defaultImageLimits, isImage, templateName, unpackFound } from "../template/image.ts";
import { ociArchitectures } from "../template/image-store.ts";
import { createTemplateCache } from "../template/template-cache.ts";
import { imageOptions } from "./image-root.ts";
import { isBelow, isFolderInUse, usedLayers } from "./snapshot-store.ts";

/** A process may be starting a sandbox from a template that was used more recently. */
const STARTING_MS_MAX = 10 * 60_000;

/** Manages images that are built on this machine: an archive, unpacked like one from elsewhere, and a name for it. */
export function ociImages(oci: OciContext): RuntimeImages {
  const { stateDir } = oci.context;
  const names = builtImages(stateDir);
  const cache = createTemplateCache({ stateDir, remove: (tree) => removeFiles(oci, [tree]) });
  const inUse = (digest: string) => isFolderInUse(oci, cache.path(templateName(digest)));
  /** Removes a template unless another name or a sandbox uses it. */
  const dropTemplate = async (digest: string) => {
    const named = (await names.list()).some((image) => image.digest === digest);
    if (!named && !(await inUse(digest))) await cache.remove(templateName(digest));
  };
  /** Returns a test for templates that no name, sandbox or snapshot uses, and that no process has used just now. */
  const unusedTemplates = async (): Promise<(name: string, lastUsedMs: number) => boolean> => {
    const named = new Set((await names.list()).map(({ digest }) => templateName(digest)));
    const { layers, areAllKnown } = await usedLayers(oci);
    const isIdle = (lastUsedMs: number) => Date.now() - lastUsedMs >= STARTING_MS_MAX;
    return (name, lastUsedMs) => areAllKnown && !named.has(name) && isIdle(lastUsedMs) && !isBelow(cache.path(name), layers);
  };
  return {
    async *build(request) {
      const before = await names.find(request.name);
      const draft = await cache.draft();
      let image: ImageView;
      try {
        const archive = join(draft, "root.tar");
        const { path } = oci.options;
        const { bytesMax } = defaultImageLimits;
        const { digest, suite } = yield* progress(bootstrapDebian({ request, target: archive, path, bytesMax }));
        yield { progress: "I: unpacking the image..." };
        const { bytes } = await unpackFound({
          options: imageOptions(oci, request.name),
          cache,
          draft,
          found: plainImage(archive, digest, oci),
        });
        image = {
          name: request.name,
          distribution: request.distribution,
          suite,
          packages: request.packages,
          digest,
          bytes,
          createdAt: new Date().toISOString(),
        };
        await names.save(image);
      } finally {
        await cache.discard(draft);
      }
      if (before !== null && before.digest !== image.digest) await dropTemplate(before.digest);
      yield { image };
    },
    list: () => names.list(),
    async remove(name) {
      const image = await names.find(name);
      if (image === null) throw new CaissonError("not_found", `there is no image ${name}`, { hint: "`caisson image ls` lists them." });
      if (await inUse(image.digest))
        throw new CaissonError("conflict", `image ${name} is in use by a sandbox or a snapshot`, {
          hint: "Remove that sandbox or snapshot first.",
        });
      await names.remove(name);
      await dropTemplate(image.digest);
    },
    unused: async () => {
      const isUnused = await unusedTemplates();
      const unused = (await cache.uses()).filter(({ name, lastUsedMs }) => isUnused(name, lastUsedMs));
      return unused.map((each) => ({ ...each, kind: isImage(each.name) ? ("image" as const) : ("template" as const) }));
    },
    removeUnused: (name) => cache.removeUnused(name, async (lastUsedMs) => (await unusedTemplates())(name, lastUsedMs)),
  };
}

async function* progress<T>(lines: AsyncGenerator<string, T>): AsyncGenerator<{ progress: string }, T> {
  for (;;) {
    const { done, value } = await lines.next();
    if (done) return value;
    yield { progress: value };
  }
}

/** Returns an image of one layer without settings. */
function plainImage(path: string, digest: string, oci: OciContext) {
  const architecture = ociArchitectures[oci.arch] ?? oci.arch;
  const document = { architecture, os: "linux", config: null, rootfs: { type: "layers" as const, diff_ids: [digest] } };
  return { digest, document, layers: [{ path, digest: null, diffId: digest }] };
}
