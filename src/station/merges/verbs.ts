import type { MergeView, ResolveMerge, StartMerge } from "../../contract/merge-verbs.ts";
import type { DrivenVerbs } from "../driven/verbs.ts";

/**
 * What can be done with merges: what several sessions changed, which began at the same place, becomes one session. It
 * is worked out by git inside a sandbox; what does not go together is resolved by an agent or a person, and never by a
 * choice that nobody made (ADR 45).
 */
export interface MergeVerbs extends DrivenVerbs<{ type: string; at: string; data: unknown }, MergeView> {
  /**
   * Begins a merge, and resolves at once. Throws `not_found`, `invalid` for sessions that did not begin at the same
   * place, `conflict` for one that somebody works in, `exists` for a name that is taken. `id` and `parent` are for
   * whoever makes it a part of something else, and must find it again: one that is there already is left as it is.
   */
  start(request: StartMerge, options?: { owner?: string; id?: string; parent?: string }): Promise<MergeView>;
  /**
   * Goes on with one that waits for a person: what is in the session that it names is a resolution, or becomes one by
   * taking sides. It is checked, and asked for again where it is none. Throws `conflict` for one that waits for nobody,
   * `invalid` for a file that is not in conflict.
   */
  resolve(word: string, request: ResolveMerge, options: { by: string }): Promise<MergeView>;
}
