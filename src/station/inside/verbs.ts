import type { SandboxId } from "../../contract/ids.ts";
import type {
  ArtifactView,
  InsideControl,
  InsideMessage,
  InsideView,
  NumberedSandboxEvent,
  ReportEvent,
  StoredArtifact,
  TellInside,
} from "../../contract/inside-verbs.ts";

/**
 * What goes between programs in a sandbox and its owner. The first four are for whoever has the sandbox's own token,
 * and are told its id; the others take whatever stands for a sandbox, those about artifacts for a run, too. All throw
 * `not_found`.
 */
export interface InsideVerbs {
  /** Puts an event into the log of the sandbox's run, else into its own. Throws `invalid`, `too_large`. */
  report(sandbox: SandboxId, event: ReportEvent): Promise<{ seq: number }>;
  /** Takes the messages that wait, the oldest first: nobody else gets them. */
  takeMessages(sandbox: SandboxId): Promise<InsideMessage[]>;
  /** It lives; the answer is what it shall do. */
  beat(sandbox: SandboxId): Promise<InsideControl>;
  /** All of it or nothing; one of the same name is replaced. Throws `too_large`, `no_space`, `busy` past a bound. */
  putArtifact(sandbox: SandboxId, name: string, data: AsyncIterable<Uint8Array>): Promise<StoredArtifact>;
  view(sandbox: string): Promise<InsideView>;
  /** Leaves a message for whoever asks inside, or says what it shall do. Throws `busy` when too many wait. */
  tell(sandbox: string, request: TellInside, options: { by: string }): Promise<void>;
  /**
   * The events in a sandbox's log, from a number on. Of one that is gone its whole id is enough, for some days. With
   * `owner`, of that owner's sandboxes only.
   */
  events(sandbox: string, options?: { fromSeq?: number; limit?: number; owner?: string }): Promise<NumberedSandboxEvent[]>;
  /** The same, then those to come, until the sandbox's end or the signal. Nothing is lost or repeated. */
  follow(sandbox: string, options?: { fromSeq?: number; signal?: AbortSignal; owner?: string }): AsyncIterable<NumberedSandboxEvent>;
  /** By name. */
  artifacts(thing: string): Promise<ArtifactView[]>;
  readArtifact(thing: string, name: string): Promise<AsyncIterable<Uint8Array>>;
}
