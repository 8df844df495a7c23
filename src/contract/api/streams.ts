import { z } from "zod";
import { JobKind, jobIdPrefixes } from "../durable/durable-kinds.ts";
import { AnyJobEvent } from "../feed/fed-event.ts";
import { ProcessRef, SandboxId } from "../ids.ts";
import { NetworkEvent } from "../network/network-event.ts";
import { Ended } from "../outcome.ts";
import { RunEvent } from "../run/run-event.ts";
import { SandboxInfo } from "../sandbox/sandbox.ts";
import { SandboxEvent } from "../sandbox/sandbox-event.ts";
import { SandboxLogEvent } from "../sandbox/sandbox-log-event.ts";
import { ChangedFiles, CreateSandbox } from "../sandbox/sandbox-verbs.ts";
import { ExecCommand } from "./exec.ts";
import { Problem } from "./problem.ts";

/**
 * The messages of the API's WebSockets. Text frames are JSON, one message each; binary frames are bytes of a process or
 * a connection. The client sends the first message, except to a port. A malformed message ends the socket with a
 * problem.
 *
 * Back-pressure: browsers buffer without bound, so a client may specify a window. The server then never has more than
 * one window of unacknowledged data in flight. Without a window, the server sends as fast as the client reads. The
 * server acknowledges input as well: if a client stays within `INPUT_WINDOW_BYTES`, input never blocks its other
 * messages, such as a request to kill a process that does not read.
 */

const WINDOW_BYTES_MAX = 16 * 1024 * 1024;
const WINDOW_EVENTS_MAX = 10_000;
const DETACH_GRACE_MS_MAX = 10 * 60_000;
const FILTER_TYPES_MAX = 100;
const FILTER_IDS_MAX = 1000;

const windowBytes = z.int().min(1024).max(WINDOW_BYTES_MAX).optional();
/** The total that the other side has consumed over this socket. */
const Taken = z.strictObject({ type: z.literal("taken"), bytes: z.int().nonnegative() });
/** The last message before the server closes the socket because of a problem. */
const ProblemMessage = z.object({ type: z.literal("problem"), problem: Problem });

/** Answered immediately. Browsers do not expose protocol pings, and would not notice a dead connection. */
const Ping = z.strictObject({ type: z.literal("ping") });
const Pong = z.object({ type: z.literal("pong") });

// Events: /v1/stream

export const EntityKind = z.enum(["run", "sandbox", ...JobKind.options]);
export type EntityKind = z.infer<typeof EntityKind>;
const entityIds = new RegExp(`^(?:run|sb|${Object.values(jobIdPrefixes).join("|")})_[a-z2-7]{12}$`);

/**
 * Selects events. Absent members do not filter; an event must match all present ones. A run's event about its sandbox
 * belongs to both.
 */
export const EventFilter = z.strictObject({
  /** Event types such as `run.ended`, or families such as `network.*`. */
  types: z
    .array(
      z
        .string()
        .max(200)
        .regex(/^[a-z][A-Za-z]*(\.[a-z][A-Za-z_]*)*(\.\*)?$/, "a type looks like run.ended, or network.* for several"),
    )
    .max(FILTER_TYPES_MAX)
    .optional(),
  entityKinds: z.array(EntityKind).max(EntityKind.options.length).optional(),
  /** Complete ids. */
  entityIds: z
    .array(z.string().regex(entityIds, "an id looks like run_k3v7q2m5x4ab, sb_k3v7q2m5x4ab or wf_k3v7q2m5x4ab"))
    .max(FILTER_IDS_MAX)
    .optional(),
});
export type EventFilter = z.infer<typeof EventFilter>;

/** An event of a run, a sandbox or a durable job. `position` increases with every event of the station. */
export const StreamedEvent = z.object({
  position: z.int().positive(),
  /** The run, sandbox or job whose log contains the event; `seq` is its number there. */
  entity: z.object({ kind: EntityKind, id: z.string() }),
  seq: z.int().positive(),
  /** Null if it cannot be read. */
  event: z.union([RunEvent, SandboxEvent, SandboxLogEvent, AnyJobEvent]).nullable(),
  damage: z.string().nullable(),
});
export type StreamedEvent = z.infer<typeof StreamedEvent>;

/**
 * `subscribe` is the first message; `filter` replaces the filter. The answer, `filtered`, has a position: the old
 * filter applies up to it, and the new one after it. No event is sent twice, and events that the old filter skipped are
 * not sent later.
 */
export const EventsClientMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("subscribe"),
    /** Only events after this position; `end` for new ones only. Absent: from the first. */
    afterPosition: z.union([z.int().nonnegative(), z.literal("end")]).optional(),
    filter: EventFilter.optional(),
    /** Maximum number of events in flight. */
    windowEvents: z.int().min(1).max(WINDOW_EVENTS_MAX).optional(),
  }),
  z.strictObject({ type: z.literal("filter"), filter: EventFilter }),
  z.strictObject({ type: z.literal("taken"), events: z.int().nonnegative() }),
  Ping,
]);
export type EventsClientMessage = z.input<typeof EventsClientMessage>;

export const EventsServerMessage = z.discriminatedUnion("type", [
  z.object({ type: z.literal("subscribed"), position: z.int().nonnegative() }),
  z.object({ type: z.literal("filtered"), position: z.int().nonnegative() }),
  /** Events in order. */
  z.object({ type: z.literal("events"), events: z.array(StreamedEvent) }),
  /** All matching events up to here were sent. Resuming after this position avoids filtering them again. */
  z.object({ type: z.literal("position"), position: z.int().nonnegative() }),
  Pong,
  ProblemMessage,
]);
export type EventsServerMessage = z.infer<typeof EventsServerMessage>;

// Holding a sandbox: /v1/sandboxes/hold and /v1/sandboxes/{sandbox}/hold

/**
 * `create` is the first message to /v1/sandboxes/hold; the other route needs none. The sandbox is held until the socket
 * closes, for any reason. Without `keep`, it is removed with its last holder.
 */
export const HoldClientMessage = z.discriminatedUnion("type", [
  CreateSandbox.extend({ type: z.literal("create") }),
  /** Releases the sandbox and confirms it; closing the socket releases it without confirmation. */
  z.strictObject({ type: z.literal("release") }),
  z.strictObject({ type: z.literal("destroy") }),
  /** Answered with `changed`, if `held` announced it. */
  z.strictObject({ type: z.literal("changedFiles") }),
  /** Only if `held` announced it. */
  Ping,
]);
export type HoldClientMessage = z.input<typeof HoldClientMessage>;

export const HoldServerMessage = z.discriminatedUnion("type", [
  /**
   * `countsChanges`: whether `changedFiles` is supported; `answersPings`: whether `ping` is. Older stations support
   * neither.
   */
  z.object({
    type: z.literal("held"),
    info: SandboxInfo,
    hasNetwork: z.boolean(),
    countsChanges: z.boolean().optional(),
    answersPings: z.boolean().optional(),
  }),
  Pong,
  /** A message for the user; sent before `held`. */
  z.object({ type: z.literal("notice"), text: z.string() }),
  z.object({ type: z.literal("network"), sandbox: SandboxId, event: NetworkEvent }),
  /** The number of network events dropped because the reader was too slow. */
  z.object({ type: z.literal("dropped"), events: z.int().positive() }),
  /** The answer of `GET /v1/sandboxes/{sandbox}/changed-files`. */
  z.object({ type: z.literal("changed"), changed: ChangedFiles.nullable() }),
  z.object({ type: z.literal("released") }),
  z.object({ type: z.literal("closed"), why: z.enum(["destroyed", "lost"]) }),
  ProblemMessage,
]);
export type HoldServerMessage = z.infer<typeof HoldServerMessage>;

// A process: /v1/sandboxes/{sandbox}/process

const TerminalSize = z.strictObject({ cols: z.int().min(1).max(65_535), rows: z.int().min(1).max(65_535) });
/** A number for the request, if the client wants an answer. */
const request = z.int().nonnegative().optional();

/**
 * How long the process continues after the connection breaks, so that a client can attach to it again. Default 0: it is
 * killed. A process with `keepLastOutput` always continues. If the client itself closes the socket, its process is
 * killed immediately, unless the client has detached.
 */
const detachGraceMs = z.int().min(0).max(DETACH_GRACE_MS_MAX).optional();

/** `start` or `attach` is the first message. */
export const ProcessClientMessage = z.discriminatedUnion("type", [
  ExecCommand.omit({ input: true }).extend({
    type: z.literal("start"),
    /** Starting a ref again attaches to the existing process. Absent: a new ref is created. */
    ref: ProcessRef.optional(),
    /** `closed`, the default, gives end-of-file immediately. A terminal always has a pipe. */
    stdin: z.enum(["closed", "pipe"]).optional(),
    pty: TerminalSize.optional(),
    keepLastOutput: z.boolean().optional(),
    detachGraceMs,
    windowBytes,
  }),
  /** There is one reader at a time: the previous one is closed with `superseded`. */
  z.strictObject({
    type: z.literal("attach"),
    ref: ProcessRef,
    stdoutOffset: z.int().nonnegative().optional(),
    stderrOffset: z.int().nonnegative().optional(),
    /** False: only the output written so far. */
    follow: z.boolean().optional(),
    /** If present, this client takes over the process as if it had started it. */
    detachGraceMs,
    windowBytes,
  }),
  z.strictObject({ type: z.literal("closeStdin"), request }),
  TerminalSize.extend({ type: z.literal("resize"), request }),
  z.strictObject({
    type: z.literal("signal"),
    signal: z.string().regex(/^SIG[A-Z0-9]{1,10}$/, "a signal looks like SIGTERM"),
    scope: z.enum(["tree", "leader"]).optional(),
    request,
  }),
  /** Kills every process of the tree. */
  z.strictObject({ type: z.literal("kill"), request }),
  /** Closes the socket; the process continues. */
  z.strictObject({ type: z.literal("detach") }),
  Ping,
  Taken,
]);
export type ProcessClientMessage = z.input<typeof ProcessClientMessage>;

export const ProcessServerMessage = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("started"),
    ref: ProcessRef,
    pid: z.int(),
    /** The command with secrets redacted, if it contained any. */
    shownArgv: z.array(z.string()).optional(),
    /** How much input this station has received, so that a reconnecting client knows what to resend. */
    stdinBytes: z.int().nonnegative(),
  }),
  Taken,
  /** No more input is accepted: the process has no stdin, or has ended. */
  z.object({ type: z.literal("stdinClosed"), problem: Problem }),
  z.object({ type: z.literal("answered"), request: z.int().nonnegative(), problem: Problem.nullable() }),
  z.object({ type: z.literal("ended"), ended: Ended }),
  Pong,
  ProblemMessage,
]);
export type ProcessServerMessage = z.infer<typeof ProcessServerMessage>;

// A connection to a port: /v1/sandboxes/{sandbox}/ports/{port}/connection

export const PortParam = z.string().regex(/^[1-9][0-9]{0,4}$/, "a port must be 1 to 65535");
export const PortQuery = z.strictObject({ windowBytes });

/** Each side ends its direction with `end`. If the socket closes before both have, the connection was reset. */
export const PortClientMessage = z.discriminatedUnion("type", [z.strictObject({ type: z.literal("end") }), Taken, Ping]);
export type PortClientMessage = z.input<typeof PortClientMessage>;

export const PortServerMessage = z.discriminatedUnion("type", [
  /** `answersPings`: whether `ping` is supported. Older stations do not support it. */
  z.object({ type: z.literal("connected"), answersPings: z.boolean().optional() }),
  Pong,
  z.object({ type: z.literal("end") }),
  /** The other side reset the connection. */
  z.object({ type: z.literal("reset") }),
  Taken,
  ProblemMessage,
]);
export type PortServerMessage = z.infer<typeof PortServerMessage>;
