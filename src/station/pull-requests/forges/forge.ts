/** A pull request as its forge reports it. */
export interface RequestView {
  id: string;
  url: string;
  state: "open" | "closed" | "merged";
  /** The commit at the tip of its branch. */
  head: string;
  /** `unknown` while the forge is still working it out. */
  mergeable: "yes" | "no" | "unknown";
  /** A readable reason why it cannot be merged. */
  why: string | null;
}

export interface NewRequest {
  title: string;
  body: string;
  branch: string;
  into: string;
  commit: string;
}

/**
 * The place where pull requests are opened. All methods throw `unavailable`, `timeout` and `busy` (worth a retry),
 * `denied`, `not_found`, `conflict`, `protocol`. A forge's claims are only data: decisions rest on the repository's
 * contents.
 */
export interface Forge {
  /**
   * Returns the pull request of this branch: an open one first, then the newest. Null if the branch has no pull
   * request.
   */
  find(request: Pick<NewRequest, "branch" | "into" | "commit">): Promise<RequestView | null>;
  open(request: NewRequest): Promise<RequestView>;
  look(id: string, request: NewRequest): Promise<RequestView>;
  /** Merges only if the pull request still has this commit. */
  merge(id: string, request: NewRequest): Promise<void>;
  close(id: string): Promise<void>;
  /** Refs that represent the request itself; they are removed together with its branch. */
  ownRefs(id: string): readonly string[];
}
