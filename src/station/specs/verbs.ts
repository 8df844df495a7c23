import type { SpecEvent } from "../../contract/spec-event.ts";
import type {
  CreateSpecInput,
  DecideSpec,
  DiffSpec,
  EditSpec,
  ExecutedSpec,
  ExecuteSpec,
  ExportedSpec,
  ExportSpec,
  ListSpecs,
  SpecDiff,
  SpecList,
  SpecView,
} from "../../contract/spec-verbs.ts";

/** One event of a spec, with its place in the spec's log. */
export type NumberedSpecEvent = SpecEvent & { seq: number };

/**
 * Specs: from an idea to work that is done, phase by phase, each phase an agent's run in a sandbox. All that take one
 * take its id, the beginning of it or its name, and throw `not_found`.
 */
export interface SpecVerbs {
  /** Writes the idea down; nothing runs. Throws `invalid`, `exists` for a name that another has. */
  create(request: CreateSpecInput, options?: { owner?: string }): Promise<SpecView>;
  get(spec: string): Promise<SpecView>;
  /** The last changed first. */
  list(options?: ListSpecs): Promise<SpecList>;
  /**
   * Drives it from where it is, or from a phase: by the station where one runs, else by this process. Resolves once
   * its first run was asked for, or it waits for a person. One that is driven goes on as it does. Throws `invalid`
   * without a project, `conflict` for one that is at work and is to begin elsewhere.
   */
  execute(spec: string, request: ExecuteSpec): Promise<ExecutedSpec>;
  /**
   * Agrees to a phase, or does not: then it is written anew. Throws `conflict` when nobody asks, `stale` for another
   * version.
   */
  decide(spec: string, request: DecideSpec): Promise<SpecView>;
  /**
   * A person's version of a phase; later phases are stale. Throws `invalid` for what does not have its shape or cannot
   * be, `conflict` while the spec is at work.
   */
  edit(spec: string, request: EditSpec): Promise<SpecView>;
  /**
   * Ends it with its runs; what is written stays, and it can be executed again. Throws `conflict` for one that is over.
   */
  cancel(spec: string, options: { by: string }): Promise<SpecView>;
  /** Resolves when it has ended or waits for a person. Throws `cancelled` with the signal. */
  wait(spec: string, options?: { signal?: AbortSignal }): Promise<SpecView>;
  /** Its events from a number on; with `follow`, also those to come, until it is over. */
  events(spec: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<NumberedSpecEvent>;
  /** What differs between two versions. Throws `not_found` for a version that there is not. */
  diff(spec: string, options?: DiffSpec): Promise<SpecDiff>;
  export(spec: string, options?: ExportSpec): Promise<ExportedSpec>;
  /** Forgets a spec that is over; its runs and sessions stay. Throws `conflict` for one that is at work. */
  remove(spec: string): Promise<SpecView>;
}
