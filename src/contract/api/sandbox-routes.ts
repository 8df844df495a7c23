import { z } from "zod";
import { SandboxInfo, SandboxPath, SandboxSpec, SandboxStats } from "../sandbox.ts";
import { CreateSandbox, SandboxList, SnapshotSandbox, SnapshotView } from "../sandbox-verbs.ts";
import { ExecCommand, ExecEvent, ExecResult, FileList } from "./exec.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfSandbox } from "./reach.ts";
import type { Route } from "./route.ts";

/** Sandboxes that are made over HTTP are kept: no request holds them, and they outlive the station. */
const KeptSandbox = CreateSandbox.extend({ spec: SandboxSpec.omit({ keep: true }).prefault({}) });

const params = { sandbox: NameOrId };
/** For whom a file is read or written. */
const user = z.string().min(1).max(32).optional();
const path = SandboxPath;

export const sandboxRoutes = {
  "sandboxes.create": {
    summary: "Make a sandbox. It lives until it is removed.",
    scope: "run",
    body: KeptSandbox,
    bodyOptional: true,
    reaches: reachOfSandbox,
    answer: { status: 201, json: SandboxInfo },
  },
  "sandboxes.list": { summary: "List sandboxes, the oldest first.", scope: "read", answer: { json: SandboxList } },
  "sandboxes.get": { summary: "One sandbox.", scope: "read", params, answer: { json: SandboxInfo } },
  "sandboxes.remove": { summary: "End and remove a sandbox.", scope: "run", params, answer: {} },
  "sandboxes.stats": { summary: "What a sandbox uses.", scope: "read", params, answer: { json: SandboxStats } },
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
    answer: { json: ExecResult, events: ExecEvent },
  },
  "files.list": {
    summary: "List a folder of a sandbox.",
    scope: "read",
    params,
    query: z.strictObject({ path, depth: z.int().min(1).max(100).optional(), limit: z.int().min(1).max(10_000).optional(), user }),
    answer: { json: FileList },
  },
  "files.remove": {
    summary: "Remove a file of a sandbox, or a folder with `recursive`.",
    scope: "run",
    params,
    query: z.strictObject({ path, recursive: z.boolean().optional(), user }),
    answer: {},
  },
  "files.read": {
    summary: "Read a file of a sandbox, or a part of it.",
    scope: "read",
    params,
    query: z.strictObject({ path, offset: z.int().min(0).optional(), length: z.int().min(0).optional(), user }),
    answer: { bytes: "application/octet-stream" },
  },
  "files.write": {
    summary: "Write a file of a sandbox, at once or not at all. `parents` makes the folders above it.",
    scope: "run",
    params,
    query: z.strictObject({
      path,
      parents: z.boolean().optional(),
      /** In decimal, such as 493 for rwxr-xr-x. */
      mode: z.int().min(0).max(0o777).optional(),
      how: z.enum(["replace", "append", "create"]).optional(),
      user,
    }),
    body: "bytes",
    answer: { json: z.object({ bytes: z.int().nonnegative() }) },
  },
  "snapshots.list": { summary: "List snapshots.", scope: "read", answer: { json: z.object({ snapshots: z.array(SnapshotView) }) } },
  "snapshots.remove": { summary: "Remove a snapshot.", scope: "run", params: { snapshot: NameOrId }, answer: {} },
} as const satisfies Record<string, Route>;
