/** An image to be fetched from a registry for an owner. */
export interface ImageFetch {
  /** A name in a registry, as `parseImageReference` gives it. */
  reference: string;
  /** The OCI layout folder to write, which does not exist yet. */
  layout: string;
  owner: string;
  /** As registries name the processor. */
  architecture: string;
  bytesMax: number;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}
