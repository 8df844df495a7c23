import { z } from "zod";
import { auditName } from "../audit-text.ts";
import { ChangeLabels } from "../change-labels.ts";
import { SandboxInfo, SandboxSpec, SandboxStats } from "../sandbox.ts";
import {
  ChangedFiles,
  CreateSandbox,
  ListSandboxes,
  ListSnapshots,
  SandboxList,
  SnapshotList,
  SnapshotSandbox,
  SnapshotView,
} from "../sandbox-verbs.ts";
import { auditedCommand, ExecCommand, ExecEvent, ExecResult } from "./exec.ts";
import { NameOrId } from "./name-or-id.ts";
import { pageLimit } from "./page-limit.ts";
import { reachOfSandbox } from "./reach.ts";
import type { Route } from "./route.ts";

/** Sandboxes that are made over HTTP are kept: no request holds them, and they outlive the station. */
const KeptSandbox = CreateSandbox.extend({ spec: SandboxSpec.omit({ keep: true, owner: true }).prefault({}) });

const params = { sandbox: NameOrId };

export const sandboxRoutes = {
  "sandboxes.create": {
    summary: "Make a sandbox. It lives until it is removed.",
    scope: "run",
    body: KeptSandbox,
    bodyOptional: true,
    reaches: reachOfSandbox,
    audited: ({ runtime, spec }: z.output<typeof KeptSandbox>) => ({
      runtime: auditName(runtime),
      name: auditName(spec.name),
    }),
    answer: { status: 201, json: SandboxInfo },
  },
  "sandboxes.list": {
    summary: "List sandboxes, the oldest first.",
    scope: "read",
    query: ListSandboxes.extend({
      /** Whether what dead creators left is swept first; default true. */
      sweep: z.boolean().optional(),
      limit: pageLimit,
    }),
    answer: { json: SandboxList },
  },
  "sandboxes.get": { summary: "One sandbox.", scope: "read", params, answer: { json: SandboxInfo } },
  "sandboxes.remove": { summary: "End and remove a sandbox.", scope: "run", params, answer: {} },
  "sandboxes.stats": { summary: "What a sandbox uses.", scope: "read", params, answer: { json: SandboxStats } },
  "sandboxes.label": {
    summary: "Change the labels of a sandbox: new values by key; null takes a label away.",
    scope: "run",
    params,
    body: ChangeLabels,
    answer: { json: SandboxInfo },
  },
  "sandboxes.pause": { summary: "Freeze every process of a sandbox.", scope: "run", params, answer: {} },
  "sandboxes.resume": { summary: "Let a paused sandbox go on.", scope: "run", params, answer: {} },
  "sandboxes.fork": {
    summary: "Make a sandbox that starts from another's files.",
    scope: "run",
    params,
    answer: { status: 201, json: SandboxInfo },
  },
  "sandboxes.snapshot": {
    summary: "Keep a sandbox's files as a template for others.",
    scope: "run",
    params,
    body: SnapshotSandbox,
    bodyOptional: true,
    answer: { status: 201, json: SnapshotView },
  },
  "sandboxes.exec": {
    summary: "Run a command in a sandbox: its whole output as JSON, or as events while it runs. It is ended when the caller goes away.",
    scope: "run",
    params,
    body: ExecCommand,
    audited: auditedCommand,
    answer: { json: ExecResult, events: ExecEvent },
  },
  "sandboxes.changedFiles": {
    summary: "How many files of a sandbox's overlaid workspace differ from the folder below; null where that cannot be seen.",
    scope: "read",
    params,
    answer: { json: z.object({ changed: ChangedFiles.nullable() }) },
  },
  "sandboxes.sweep": {
    summary: "Remove what creators that died left behind, except kept sandboxes.",
    scope: "run",
    answer: {},
  },
  "snapshots.list": {
    summary: "List snapshots, the oldest first.",
    scope: "read",
    query: ListSnapshots.extend({ limit: pageLimit }),
    answer: { json: SnapshotList },
  },
  "snapshots.remove": { summary: "Remove a snapshot.", scope: "run", params: { snapshot: NameOrId }, answer: {} },
} as const satisfies Record<string, Route>;
