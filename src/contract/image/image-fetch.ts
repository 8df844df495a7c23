/** A request to fetch an image from a registry for an owner. */
export interface ImageFetch {
  /** A registry reference from `parseImageReference`. */
  reference: string;
  /** The OCI layout folder to write, which does not exist yet. */
  layout: string;
  owner: string;
  /** The processor's name in registries. */
  architecture: string;
  bytesMax: number;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}
