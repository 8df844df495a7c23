import { removeFiles, runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import type { GeneratedFile } from "../template/etc-files.ts";
import type { TemplateFolder } from "../template/host-template.ts";
import { type ResolveImageOptions, resolveImage } from "../template/image.ts";
import { imageFiles } from "../template/image-files.ts";
import type { RootLayer } from "./layers.ts";

/** What an image contributes to a sandbox's root, and what must be laid over it. */
export interface ImageRoot {
  layer: RootLayer;
  folders: TemplateFolder[];
  files: GeneratedFile[];
  env: Record<string, string>;
}

/** Resolves an image. Throws as `resolveImage` does. */
export async function imageRoot(
  oci: OciContext,
  reference: string,
  { owner, signal }: { owner?: string | undefined; signal?: AbortSignal | undefined },
): Promise<ImageRoot> {
  const { rootfsDir, config } = await resolveImage({ ...imageOptions(oci, reference), owner, fetchFor: oci.options.fetchImageFor, signal });
  return { layer: { dir: rootfsDir, mapped: true }, ...imageFiles({ rootfsDir }), env: config.env };
}

/** Returns how this runtime unpacks images: with the ids of its sandboxes. */
export function imageOptions(oci: OciContext, reference: string): ResolveImageOptions {
  const { home, path } = oci.options;
  const { rootless } = oci.identity();
  return {
    reference,
    stateDir: oci.context.stateDir,
    disk: oci.context.disk,
    arch: oci.arch,
    env: { HOME: home, PATH: path },
    ...(rootless ? { inside: (argv, how) => runInside(oci, argv, how), remove: (tree) => removeFiles(oci, [tree]) } : {}),
  };
}
