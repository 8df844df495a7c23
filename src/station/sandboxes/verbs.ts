import type { ChangeLabels } from "../../contract/change-labels.ts";
import type { SandboxInfo, SandboxStats } from "../../contract/sandbox.ts";
import type {
  ChangedFiles,
  CreateSandbox,
  ListSandboxes,
  ListSnapshots,
  SandboxList,
  SnapshotList,
  SnapshotSandbox,
  SnapshotView,
} from "../../contract/sandbox-verbs.ts";
import type { HeldSandbox } from "./held-sandbox.ts";

/**
 * What can be done with sandboxes. Where an id is taken, the beginning of it or a name will do as well; all that take
 * one throw `invalid` for what is neither and for what stands for several (`details.candidates`), `not_found`, and
 * `lost` when only remains are there.
 */
export interface SandboxVerbs {
  /**
   * A new sandbox, held by the caller. Without `keep` it is removed when its last holder lets go; with it, it lives on.
   * Throws `invalid`, `unsupported` for what cannot be enforced, `unavailable` when nothing here can isolate,
   * `cancelled`, `exists` for a name that something else has; nothing is left behind then. `owner` is whose it is, for
   * whoever acts for others (`ownedStation`).
   */
  create(
    request: CreateSandbox,
    options?: { signal?: AbortSignal; owner?: string; onNotice?: (text: string) => void },
  ): Promise<HeldSandbox>;
  /**
   * A handle for commands, files and ports. Counted: however many hold a sandbox, this process has one connection to
   * its guest, and gives it up when the last of them lets go. What one holder does to its handle does not touch the
   * others'.
   */
  hold(id: string, options?: { signal?: AbortSignal }): Promise<HeldSandbox>;
  get(id: string): Promise<SandboxInfo>;
  /**
   * What dead creators left is swept first, unless that would take too long for the purpose. Throws `invalid` for a
   * cursor that is none.
   */
  list(options?: ListSandboxes & { sweep?: boolean }): Promise<SandboxList>;
  /**
   * How many files of its overlaid workspace differ from the folder below, ignored ones included, at the price of a
   * look; null where that cannot be seen from outside.
   */
  changedFiles(id: string): Promise<ChangedFiles | null>;
  /** Changes what it is found by; null takes a label away. Throws `invalid`. */
  label(id: string, changes: ChangeLabels): Promise<SandboxInfo>;
  stats(id: string): Promise<SandboxStats>;
  /** Freezes every process. Idempotent. Throws `unsupported`. */
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  /** Keeps its files as a template for later sandboxes. Throws `unsupported`, `no_space`, `exists`. */
  snapshot(id: string, options?: SnapshotSandbox): Promise<SnapshotView>;
  /** A new kept sandbox that starts from this one's files. Throws `unsupported`. */
  fork(id: string): Promise<SandboxInfo>;
  /**
   * Ends and removes it, by asking it or, where it does not answer, by the host's own means. Also one whose record is
   * damaged.
   */
  remove(id: string): Promise<void>;
  /** Removes what dead creators left behind, except kept sandboxes, and the sandboxes of runs that have ended. */
  sweep(): Promise<void>;
  /** Everybody's whom the caller sees, or one owner's; oldest first. */
  snapshots(options?: ListSnapshots): Promise<SnapshotList>;
  removeSnapshot(id: string): Promise<void>;
}
