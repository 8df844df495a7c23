import { z } from "zod";
import { pageLimit } from "../contract/api/page-limit.ts";
import { reachOfSandbox } from "../contract/api/required-scopes.ts";
import { auditName } from "../contract/audit/audit-text.ts";
import { ChangeLabels } from "../contract/label/change-labels.ts";
import { SandboxConfig, SandboxInfo, SandboxStats } from "../contract/sandbox/sandbox.ts";
import {
  ChangedFiles,
  CreateSandbox,
  ForkSandbox,
  ListSandboxes,
  ListSnapshots,
  PauseSandbox,
  SandboxList,
  SnapshotList,
  SnapshotSandbox,
  SnapshotView,
} from "../contract/sandbox/sandbox-verbs.ts";
import type { HeldSandbox } from "./held-sandbox.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

/** Sandboxes created over HTTP are kept: no request holds them, and they outlive the station. */
const KeptSandbox = CreateSandbox.extend({ spec: SandboxConfig.omit({ keep: true, owner: true }).prefault({}) });

/**
 * Sandboxes. A sandbox is named by its id, an id prefix or its name. The verbs throw `invalid` for a malformed or
 * ambiguous one (`details.candidates`), `not_found`, and `lost` if only remains exist.
 */
export const sandboxes = {
  /**
   * Creates a sandbox that the caller holds. With `keep` it persists; otherwise its last holder's release removes it.
   * Throws `invalid`, `unsupported` for what cannot be enforced, `unavailable` if nothing here can isolate,
   * `cancelled`, `exists` for a name that is taken; nothing is left behind then.
   */
  create: verbOfType<
    (request: CreateSandbox, options?: { signal?: AbortSignal; owner?: string; onNotice?: (text: string) => void }) => Promise<HeldSandbox>
  >()({
    path: "POST /v1/sandboxes",
    body: KeptSandbox,
    bodyOptional: true,
    answer: { status: 201, json: SandboxInfo },
    reaches: reachOfSandbox,
    audited: ({ runtime, spec: config }: z.output<typeof KeptSandbox>) => ({ runtime: auditName(runtime), name: auditName(config.name) }),
    scope: "run",
    owned: "by hand",
    summary: "Create a sandbox. It persists until it is removed.",
  }),
  /**
   * Opens a handle for commands, files and ports. All holders of a sandbox share one connection to its guest, which
   * closes with the last release. What one holder does to its handle does not affect the others.
   */
  hold: verbOfType<(id: string, options?: { signal?: AbortSignal }) => Promise<HeldSandbox>>()({
    owned: "sandbox",
    withoutRoute: "a WebSocket holds the sandbox as long as it is open",
  }),
  get: verb({ path: "GET /v1/sandboxes/{sandbox}", gives: SandboxInfo, scope: "read", owned: "sandbox", summary: "Get one sandbox." }),
  /**
   * Lists sandboxes. Sweeps first what dead creators left behind, unless `sweep` is false. Throws `invalid` for a
   * malformed cursor.
   */
  list: verb({
    path: "GET /v1/sandboxes",
    takes: ListSandboxes.extend({
      /** Whether to sweep first what dead creators left behind. Default true. */
      sweep: z.boolean().optional(),
      limit: pageLimit,
    }),
    gives: SandboxList,
    scope: "read",
    owned: "by hand",
    summary: "List sandboxes, oldest first.",
  }),
  /**
   * Counts the files of its overlaid workspace that differ from the folder below, including ignored ones. Cheap. Null
   * if that cannot be seen from outside.
   */
  changedFiles: verb({
    path: "GET /v1/sandboxes/{sandbox}/changed-files",
    gives: ChangedFiles.nullable(),
    key: "changed",
    scope: "read",
    owned: "sandbox",
    summary: "Count the files of a sandbox's overlaid workspace that differ from the folder below; null if that cannot be seen.",
  }),
  /** Changes labels; null removes one. Throws `invalid`. */
  label: verb({
    path: "PATCH /v1/sandboxes/{sandbox}/labels",
    takes: ChangeLabels,
    gives: SandboxInfo,
    scope: "run",
    owned: "sandbox",
    summary: "Change the labels of a sandbox: new values by key; null removes a label.",
  }),
  stats: verb({
    path: "GET /v1/sandboxes/{sandbox}/stats",
    gives: SandboxStats,
    scope: "read",
    owned: "sandbox",
    summary: "Show the resource usage of a sandbox.",
  }),
  /**
   * Freezes every process, or with `toDisk` stores and ends them, which survives a reboot. Throws `unsupported`, and
   * for `toDisk` names a process that cannot be stored.
   */
  pause: verb({
    path: "POST /v1/sandboxes/{sandbox}/pause",
    takes: PauseSandbox,
    bodyOptional: true,
    scope: "run",
    owned: "sandbox",
    summary: "Freeze every process of a sandbox.",
  }),
  resume: verb({
    path: "POST /v1/sandboxes/{sandbox}/resume",
    scope: "run",
    owned: "sandbox",
    summary: "Resume a paused sandbox.",
  }),
  /**
   * Stores its files, and with `memory` its processes, for later sandboxes. Throws `unsupported`, `no_space`, `exists`.
   */
  snapshot: verb({
    path: "POST /v1/sandboxes/{sandbox}/snapshots",
    takes: SnapshotSandbox,
    bodyOptional: true,
    gives: SnapshotView,
    status: 201,
    scope: "run",
    owned: "sandbox",
    summary: "Store a sandbox's files as a template for other sandboxes.",
  }),
  /**
   * Creates a kept sandbox that starts from this one's files, and with `memory` its processes. Throws `unsupported`.
   */
  fork: verb({
    path: "POST /v1/sandboxes/{sandbox}/fork",
    takes: ForkSandbox,
    bodyOptional: true,
    gives: SandboxInfo,
    status: 201,
    scope: "run",
    owned: "sandbox",
    summary: "Create a sandbox that starts from another's files.",
  }),
  /** Ends and removes a sandbox, by force if it does not answer. Works even if its record is damaged. */
  remove: verb({
    path: "DELETE /v1/sandboxes/{sandbox}",
    scope: "run",
    owned: "sandbox",
    summary: "End and remove a sandbox.",
  }),
  /**
   * Removes what dead creators left behind, except kept sandboxes, and removes the sandboxes of runs that have ended.
   */
  sweep: verb({
    path: "POST /v1/sandboxes/sweep",
    scope: "run",
    owned: "everyone",
    summary: "Remove what dead creators left behind, except kept sandboxes.",
  }),
  /** Lists snapshots, oldest first: of every owner that the caller sees, or of one. */
  snapshots: verb({
    path: "GET /v1/snapshots",
    route: "snapshots.list",
    takes: ListSnapshots.extend({ limit: pageLimit }),
    gives: SnapshotList,
    scope: "read",
    owned: "by hand",
    summary: "List snapshots, oldest first.",
  }),
  removeSnapshot: verb({
    path: "DELETE /v1/snapshots/{snapshot}",
    route: "snapshots.remove",
    scope: "run",
    owned: "snapshot",
    summary: "Remove a snapshot.",
  }),
};

export type SandboxVerbs = VerbsOf<typeof sandboxes>;
