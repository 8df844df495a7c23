import { z } from "zod";
import { AnyDrivenEvent, DrivenKind, drivenIdPrefixes } from "../driven-kinds.ts";
import { SandboxEvent } from "../event.ts";
import { ProcessRef, SandboxId } from "../ids.ts";
import { NetworkEvent } from "../network-event.ts";
import { Ended } from "../outcome.ts";
import { RunEvent } from "../run-event.ts";
import { SandboxInfo } from "../sandbox.ts";
import { SandboxLogEvent } from "../sandbox-log-event.ts";
import { ChangedFiles, CreateSandbox } from "../sandbox-verbs.ts";
import { ExecCommand } from "./exec.ts";
import { Problem } from "./problem.ts";

/**
 * The messages of the API's WebSockets. Text frames are JSON, one message each; binary frames are bytes of a process or
 * a connection. The client speaks first, except to a port. Messages that are malformed end the socket with a problem.
 *
 * Back-pressure. A browser takes whatever comes, so a client may name a window: the server then sends no more than that
 * beyond what the client says it has taken. Without a window, how fast the client reads its connection decides. The
 * server says what it has taken, too; a client that keeps within `INPUT_WINDOW_BYTES` of it is never made to wait with
 * its other messages, such as one that kills a process which does not read.
 */

const WINDOW_BYTES_MAX = 16 * 1024 * 1024;
const WINDOW_EVENTS_MAX = 10_000;
const DETACH_GRACE_MS_MAX = 10 * 60_000;
const FILTER_TYPES_MAX = 100;
const FILTER_IDS_MAX = 1000;

const windowBytes = z.int().min(1024).max(WINDOW_BYTES_MAX).optional();
/** How much the other side has taken over this socket, all together. */
const Taken = z.strictObject({ type: z.literal("taken"), bytes: z.int().nonnegative() });
/** The last message before the server closes because of it. */
const ProblemMessage = z.object({ type: z.literal("problem"), problem: Problem });

/** Answered at once: a browser sees none of the pings below the messages, and no connection that died silently. */
const Ping = z.strictObject({ type: z.literal("ping") });
const Pong = z.object({ type: z.literal("pong") });

// Events: /v1/stream

export const EntityKind = z.enum(["run", "sandbox", ...DrivenKind.options]);
export type EntityKind = z.infer<typeof EntityKind>;
const entityIds = new RegExp(`^(?:run|sb|${Object.values(drivenIdPrefixes).join("|")})_[a-z2-7]{12}$`);

/**
 * Which events. What is absent is not asked about; an event must pass all that is there. An event of a run that tells
 * of its sandbox belongs to both.
 */
export const EventFilter = z.strictObject({
  /** Whole types, or the beginnings of some: `run.ended`, `network.*`. */
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
  /** Whole ids. */
  entityIds: z
    .array(z.string().regex(entityIds, "an id looks like run_k3v7q2m5x4ab, sb_k3v7q2m5x4ab or wf_k3v7q2m5x4ab"))
    .max(FILTER_IDS_MAX)
    .optional(),
});
export type EventFilter = z.infer<typeof EventFilter>;

/** One event of a run, a sandbox, or a driven thing. `position` grows with every event of the station. */
export const StreamedEvent = z.object({
  position: z.int().positive(),
  /** Whose log it is in, and its number there. */
  entity: z.object({ kind: EntityKind, id: z.string() }),
  seq: z.int().positive(),
  /** Null for one that cannot be read. */
  event: z.union([RunEvent, SandboxEvent, SandboxLogEvent, AnyDrivenEvent]).nullable(),
  damage: z.string().nullable(),
});
export type StreamedEvent = z.infer<typeof StreamedEvent>;

/**
 * `subscribe` is the first message; `filter` replaces the filter. Events up to the position in the answer, `filtered`,
 * passed the old one, and those after it pass the new one: none is sent twice, and none that was let go by comes back.
 */
export const EventsClientMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("subscribe"),
    /** Events after this position; `end`: only those to come. Absent: from the first. */
    afterPosition: z.union([z.int().nonnegative(), z.literal("end")]).optional(),
    filter: EventFilter.optional(),
    /** How many events may be on their way. */
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
  /** In order. */
  z.object({ type: z.literal("events"), events: z.array(StreamedEvent) }),
  /** Everything up to here was looked at, and what passed was sent: to come back after it saves looking again. */
  z.object({ type: z.literal("position"), position: z.int().nonnegative() }),
  Pong,
  ProblemMessage,
]);
export type EventsServerMessage = z.infer<typeof EventsServerMessage>;

// A held sandbox: /v1/sandboxes/hold and /v1/sandboxes/{sandbox}/hold

/**
 * `create` is the first message to /v1/sandboxes/hold; the other one needs none. The sandbox is held until the socket
 * closes, however it does: one without `keep` goes with its last holder.
 */
export const HoldClientMessage = z.discriminatedUnion("type", [
  CreateSandbox.extend({ type: z.literal("create") }),
  /** Lets go, and tells when that is done, which closing the socket does not. */
  z.strictObject({ type: z.literal("release") }),
  z.strictObject({ type: z.literal("destroy") }),
  /** Answered with `changed`, where `held` said so. */
  z.strictObject({ type: z.literal("changedFiles") }),
  /** Where `held` said so. */
  Ping,
]);
export type HoldClientMessage = z.input<typeof HoldClientMessage>;

export const HoldServerMessage = z.discriminatedUnion("type", [
  /**
   * `countsChanges`: whether it can be asked for `changedFiles`, which stations before did not know; `answersPings`: as
   * much of `ping`.
   */
  z.object({
    type: z.literal("held"),
    info: SandboxInfo,
    hasNetwork: z.boolean(),
    countsChanges: z.boolean().optional(),
    answersPings: z.boolean().optional(),
  }),
  Pong,
  /** Worth a word to the user; before `held`. */
  z.object({ type: z.literal("notice"), text: z.string() }),
  z.object({ type: z.literal("network"), sandbox: SandboxId, event: NetworkEvent }),
  /** Network events that a slow reader did not get. */
  z.object({ type: z.literal("dropped"), events: z.int().positive() }),
  /** As `GET /v1/sandboxes/{sandbox}/changed-files` has it. */
  z.object({ type: z.literal("changed"), changed: ChangedFiles.nullable() }),
  z.object({ type: z.literal("released") }),
  z.object({ type: z.literal("closed"), why: z.enum(["destroyed", "lost"]) }),
  ProblemMessage,
]);
export type HoldServerMessage = z.infer<typeof HoldServerMessage>;

// A process: /v1/sandboxes/{sandbox}/process

const TerminalSize = z.strictObject({ cols: z.int().min(1).max(65_535), rows: z.int().min(1).max(65_535) });
/** One that wants to know how its request went numbers it. */
const request = z.int().nonnegative().optional();

/**
 * What becomes of the process when the connection breaks off: it goes on for so long, and whoever attaches within that
 * time has it again. 0, the default: it is ended. One with `keepLastOutput` always goes on. A socket that its client
 * closes ends its process at once, unless it was detached from.
 */
const detachGraceMs = z.int().min(0).max(DETACH_GRACE_MS_MAX).optional();

/** `start` or `attach` is the first message. */
export const ProcessClientMessage = z.discriminatedUnion("type", [
  ExecCommand.omit({ input: true }).extend({
    type: z.literal("start"),
    /** Starting the same ref again attaches to the first process. Absent: a fresh one is made. */
    ref: ProcessRef.optional(),
    /** `closed`, the default, gives end-of-file at once. A terminal always has a pipe. */
    stdin: z.enum(["closed", "pipe"]).optional(),
    pty: TerminalSize.optional(),
    keepLastOutput: z.boolean().optional(),
    detachGraceMs,
    windowBytes,
  }),
  /** One reader at a time: the one before is closed with `superseded`. */
  z.strictObject({
    type: z.literal("attach"),
    ref: ProcessRef,
    stdoutOffset: z.int().nonnegative().optional(),
    stderrOffset: z.int().nonnegative().optional(),
    /** False: only what was written by now. */
    follow: z.boolean().optional(),
    /** Present: the process is this client's from now on, as if it had started it. */
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
  /** Ends every process of the tree. */
  z.strictObject({ type: z.literal("kill"), request }),
  /** The process goes on by itself, and the socket is closed. */
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
    /** Its command as it may be shown, where values of secrets were in it. */
    shownArgv: z.array(z.string()).optional(),
    /** How much of its input this station has taken, so that a client which comes back knows what to say again. */
    stdinBytes: z.int().nonnegative(),
  }),
  Taken,
  /** Nothing more is taken: it has no input, or has ended. */
  z.object({ type: z.literal("stdinClosed"), problem: Problem }),
  z.object({ type: z.literal("answered"), request: z.int().nonnegative(), problem: Problem.nullable() }),
  z.object({ type: z.literal("ended"), ended: Ended }),
  Pong,
  ProblemMessage,
]);
export type ProcessServerMessage = z.infer<typeof ProcessServerMessage>;

// A connection to a port: /v1/sandboxes/{sandbox}/ports/{port}/connection

export const PortParam = z.string().regex(/^[1-9][0-9]{0,4}$/, "a port is 1 to 65535");
export const PortQuery = z.strictObject({ windowBytes });

/** Either side ends its direction with `end`. A socket that closes before both have is a connection that was reset. */
export const PortClientMessage = z.discriminatedUnion("type", [z.strictObject({ type: z.literal("end") }), Taken, Ping]);
export type PortClientMessage = z.input<typeof PortClientMessage>;

export const PortServerMessage = z.discriminatedUnion("type", [
  /** `answersPings`: whether it can be sent `ping`, which stations before did not know. */
  z.object({ type: z.literal("connected"), answersPings: z.boolean().optional() }),
  Pong,
  z.object({ type: z.literal("end") }),
  /** The other side broke it off. */
  z.object({ type: z.literal("reset") }),
  Taken,
  ProblemMessage,
]);
export type PortServerMessage = z.infer<typeof PortServerMessage>;
