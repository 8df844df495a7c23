/** A pull request as its forge shows it. */
export interface RequestView {
  id: string;
  url: string;
  state: "open" | "closed" | "merged";
  /** The commit that it brings. */
  head: string;
  /** `unknown`: the forge is still finding out. */
  mergeable: "yes" | "no" | "unknown";
  /** Why not, for people. */
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
 * Where pull requests are made. All throw `unavailable`, `timeout` and `busy` (worth another try), `denied`,
 * `not_found`, `conflict`, `protocol`. What a forge says is data: what counts is read from the repository.
 */
export interface Forge {
  /** The request of this branch: an open one first, then the newest. Null when there is none. */
  find(request: Pick<NewRequest, "branch" | "into" | "commit">): Promise<RequestView | null>;
  open(request: NewRequest): Promise<RequestView>;
  look(id: string, request: NewRequest): Promise<RequestView>;
  /** Only when the request still brings this commit. */
  merge(id: string, request: NewRequest): Promise<void>;
  close(id: string): Promise<void>;
  /** Refs that stand for the request itself, and are removed with its branch. */
  ownRefs(id: string): readonly string[];
}
