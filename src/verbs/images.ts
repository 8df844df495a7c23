import { z } from "zod";
import { BuildImage, ImageName, ImageView } from "../contract/image/image-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** Images that were built on this machine, from which sandboxes start by name. */
export const images = {
  /**
   * Builds an image: yields progress lines, then the image. Replaces an image of the same name; sandboxes that started
   * from it continue. Throws `invalid`, `unavailable` (a program is missing, or the archive does not answer),
   * `unsupported`, `no_space`.
   */
  build: verb({
    path: "POST /v1/images",
    takes: BuildImage,
    gives: z.union([z.object({ progress: z.string() }), z.object({ image: ImageView })]),
    kind: "items",
    scope: "admin",
    owned: "admin",
    summary: "Build an image: progress line by line, then the image. Replaces an image of the same name.",
  }),
  /** Sorted by name. */
  list: verb({
    path: "GET /v1/images",
    gives: z.array(ImageView),
    key: "images",
    scope: "read",
    owned: "everyone",
    summary: "List the images built on the station's machine.",
  }),
  /** Throws `not_found`. */
  get: verb({
    path: "GET /v1/images/{image}",
    params: { image: ImageName },
    gives: ImageView,
    scope: "read",
    owned: "everyone",
    summary: "Get one image.",
  }),
  /** Throws `not_found`, and `conflict` while a sandbox or a snapshot builds on it. */
  remove: verb({
    path: "DELETE /v1/images/{image}",
    params: { image: ImageName },
    scope: "admin",
    owned: "admin",
    summary: "Remove an image.",
  }),
};

export type ImageVerbs = VerbsOf<typeof images>;
