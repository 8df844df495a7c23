import type { UploadView } from "../../contract/upload-verbs.ts";

/** Folders of other machines that were sent here, to be workspaces. All that take an id throw `not_found`. */
export interface UploadVerbs {
  /**
   * Keeps a folder, which comes as a tar archive: all of it or nothing. One that is here already is not kept twice.
   * Nothing in the archive is believed. Throws `invalid`, also where it has not the digest that was said, `unsafe`,
   * `too_large`, `busy` while too much is kept that nothing uses, `no_space`, `cancelled`.
   */
  put(archive: AsyncIterable<Uint8Array>, options?: { digest?: string; owner?: string; signal?: AbortSignal }): Promise<UploadView>;
  /** With a digest or an owner: only those. */
  list(options?: { digest?: string; owner?: string }): Promise<UploadView[]>;
  get(id: string): Promise<UploadView>;
  /** Throws `conflict` while something uses it. */
  remove(id: string): Promise<void>;
  /** Removes what nothing used for a while, and what an upload that was cut off left. */
  sweep(): Promise<void>;
}
