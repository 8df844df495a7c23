import type { BuildImage, ImageView } from "../../contract/image-verbs.ts";

/** Images that were built here, to start sandboxes from by their name. */
export interface ImageVerbs {
  /**
   * Builds an image: what is being done, line by line, at last the image. One of the same name is replaced; sandboxes
   * that started from it go on. Throws `invalid`, `unavailable` (a program that it needs is missing, or the archive
   * does not answer), `unsupported`, `no_space`.
   */
  build(request: BuildImage): AsyncIterable<{ progress: string } | { image: ImageView }>;
  /** By name. */
  list(): Promise<ImageView[]>;
  /** Throws `not_found`, and `conflict` while a sandbox or a snapshot is built on it. */
  remove(name: string): Promise<void>;
}
