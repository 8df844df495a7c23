import { z } from "zod";

const LAYERS_MAX = 256;

export const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, "only sha256 digests are supported");

const Descriptor = z.object({
  mediaType: z.string().max(256).optional(),
  digest: Digest,
  size: z.int().nonnegative(),
  annotations: z.record(z.string(), z.string()).optional(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
});
export type Descriptor = z.infer<typeof Descriptor>;

/** `index.json` of an OCI layout, or a list of manifests for several processors. */
export const ImageIndex = z.object({ manifests: z.array(Descriptor).max(1024) });
export type ImageIndex = z.infer<typeof ImageIndex>;

export const ImageManifest = z.object({ config: Descriptor, layers: z.array(Descriptor).max(LAYERS_MAX) });
export type ImageManifest = z.infer<typeof ImageManifest>;

/** `manifest.json` as `docker save` writes it. */
export const DockerManifest = z
  .array(
    z.object({
      Config: z.string().max(4096),
      RepoTags: z.array(z.string()).nullish(),
      Layers: z.array(z.string().max(4096)).max(LAYERS_MAX),
    }),
  )
  .min(1)
  .max(1024);

const StringList = z.array(z.string().max(131_072)).max(4096).nullish();

/** The parts of an image's configuration that a sandbox uses. */
export const ImageDocument = z.object({
  architecture: z.string().max(64),
  os: z.string().max(64),
  config: z
    .object({
      Env: StringList,
      WorkingDir: z.string().max(4095).nullish(),
      User: z.string().max(256).nullish(),
      Entrypoint: StringList,
      Cmd: StringList,
    })
    .nullish(),
  rootfs: z.object({ type: z.literal("layers"), diff_ids: z.array(Digest).max(LAYERS_MAX) }),
});
export type ImageDocument = z.infer<typeof ImageDocument>;

/** What a sandbox takes over from its image. */
export const ImageConfig = z.object({
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  user: z.string().nullable(),
  entrypoint: z.array(z.string()),
  command: z.array(z.string()),
});
export type ImageConfig = z.infer<typeof ImageConfig>;

export const emptyImageConfig: ImageConfig = { env: {}, workdir: "/", user: null, entrypoint: [], command: [] };

/** Leaves out variables with an unusable name or a NUL, and a working folder that is not a plain absolute path. */
export function imageConfigOf(document: ImageDocument): ImageConfig {
  const config = document.config ?? {};
  const env: Record<string, string> = {};
  for (const pair of config.Env ?? []) {
    const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)$/s.exec(pair) ?? [];
    if (name !== undefined && value !== undefined && name !== "__proto__") env[name] = value;
  }
  const workdir = config.WorkingDir ?? "";
  const plain = workdir.startsWith("/") && !workdir.includes("\0") && !workdir.split("/").includes("..");
  return {
    env,
    workdir: plain ? workdir : "/",
    user: config.User ? config.User : null,
    entrypoint: config.Entrypoint ?? [],
    command: config.Cmd ?? [],
  };
}
