import type { HoldClientMessage, HoldServerMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { NetworkEvent } from "../contract/network/network-event.ts";
import type { SandboxInfo } from "../contract/sandbox/sandbox.ts";
import type { ChangedFiles } from "../contract/sandbox/sandbox-verbs.ts";
import { ignore } from "../lib/failures.ts";
import type { Connection } from "./request.ts";
import { whileAlive } from "./sign-of-life.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

export type CreateHeld = Omit<Extract<HoldClientMessage, { type: "create" }>, "type">;

/** A sandbox that is held for as long as a connection is open. Without `keep`, it is removed with its last holder. */
export interface RemoteHold extends AsyncDisposable {
  readonly info: SandboxInfo;
  readonly hasNetwork: boolean;
  /** Resolves when the sandbox is removed, or with `lost` when the connection breaks. Never rejects. */
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  /** Counts changed files over the same connection; null if the station does not support it. */
  readonly changedFiles: (() => Promise<ChangedFiles | null>) | null;
  /** Calls the listener with network events while the station serves the network. Returns a function that stops it. */
  subscribe(listener: (event: NetworkEvent) => void): () => void;
  /** Releases the sandbox, and resolves when the station has done so. Idempotent. */
  release(): Promise<void>;
  /** Removes the sandbox, for every holder. Idempotent. */
  destroy(): Promise<void>;
}

/** How long a station may take to confirm that a cancelled sandbox is removed. */
const GIVE_UP_MS = 10_000;

/**
 * Creates a sandbox and holds it. Throws what creating one throws. If the signal aborts, the sandbox is removed again.
 */
export function createHeld(
  to: Connection,
  request: CreateHeld,
  options: { signal?: AbortSignal; onNotice?: (text: string) => void } = {},
): Promise<RemoteHold> {
  return hold(to, { name: "sandboxes.createHeld", first: { type: "create", ...request }, ...options });
}

export function holdSandbox(to: Connection, sandbox: string, options: { signal?: AbortSignal } = {}): Promise<RemoteHold> {
  return hold(to, { name: "sandboxes.hold", params: { sandbox }, ...options });
}

type Held = Extract<HoldServerMessage, { type: "held" }>;
interface HoldOptions {
  name: "sandboxes.createHeld" | "sandboxes.hold";
  params?: Readonly<Record<string, string>>;
  first?: HoldClientMessage;
  signal?: AbortSignal;
  onNotice?: (text: string) => void;
}

async function hold(to: Connection, { first, signal, onNotice, ...options }: HoldOptions): Promise<RemoteHold> {
  const held = Promise.withResolvers<Held>();
  const ended = Promise.withResolvers<{ why: "destroyed" | "lost" }>();
  const released = Promise.withResolvers<void>();
  const listeners = new Set<(event: NetworkEvent) => void>();
  const counts: ((changed: ChangedFiles | null) => void)[] = [];
  const opening = new AbortController();
  let socket: StreamSocket | undefined;
  let isGivenUp = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let silence: SilenceWatch | null = null;
  const giveUp = () => {
    if (socket === undefined || first === undefined) return opening.abort();
    // The station closes the socket when the sandbox is removed.
    isGivenUp = true;
    socket.send({ type: "destroy" } satisfies HoldClientMessage);
    timer = setTimeout(() => opening.abort(), GIVE_UP_MS);
  };
  if (signal?.aborted) giveUp();
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    socket = await openStream(to, options.name, {
      ...options,
      signal: opening.signal,
      onMessage(raw) {
        const message = raw as HoldServerMessage;
        silence?.reset();
        if (message.type === "held") held.resolve(message);
        else if (message.type === "closed") ended.resolve({ why: message.why });
        else if (message.type === "released") released.resolve();
        else if (message.type === "changed") for (const tell of counts.splice(0)) tell(message.changed);
        else if (message.type === "notice") onNotice?.(message.text);
        else if (message.type === "network") for (const listener of [...listeners]) listener(message.event);
      },
    });
    if (first !== undefined) socket.send(first);
    const closed = socket.closed.then(({ error }) => {
      clearTimeout(timer);
      ended.resolve({ why: "lost" });
      if (error === null) released.resolve();
      else released.reject(error);
      throw signal?.aborted ? new CaissonError("cancelled", "interrupted before the sandbox was ready") : (error ?? endedEarly());
    });
    void ignore(closed, "awaited in the race below");
    void ignore(released.promise, "awaited by callers that release");
    const { type: _, answersPings, ...details } = await whileAlive(to, () => Promise.race([held.promise, closed]));
    if (isGivenUp) await closed;
    if (answersPings === true) {
      silence = watchSilence(socket, to.silenceMs ?? SILENCE_MS);
      void silence.fallen.then(({ error }) => {
        ended.resolve({ why: "lost" });
        released.reject(error);
      });
    }
    return handleOf({ socket, ...details, listeners, counts, ended: ended.promise, released: released.promise });
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unavailable") socket?.abandon();
    throw error;
  } finally {
    // Once the sandbox is ready, only its handle releases it.
    signal?.removeEventListener("abort", giveUp);
  }
}

function handleOf(options: {
  socket: StreamSocket;
  info: SandboxInfo;
  hasNetwork: boolean;
  countsChanges?: boolean | undefined;
  listeners: Set<(event: NetworkEvent) => void>;
  counts: ((changed: ChangedFiles | null) => void)[];
  ended: Promise<{ why: "destroyed" | "lost" }>;
  released: Promise<void>;
}): RemoteHold {
  const { socket, info, hasNetwork, countsChanges = false, listeners, counts, ended } = options;
  let leaving: Promise<void> | undefined;
  let isGone = false;
  void ended.then(() => {
    isGone = true;
  });
  const leave = async (message: HoldClientMessage): Promise<void> => {
    if (isGone) return;
    socket.send(message);
    await options.released;
  };
  const release = () => {
    leaving ??= leave({ type: "release" });
    return leaving;
  };
  const changedFiles = async (): Promise<ChangedFiles | null> => {
    if (isGone) return null;
    const count = new Promise<ChangedFiles | null>((resolve) => counts.push(resolve));
    socket.send({ type: "changedFiles" } satisfies HoldClientMessage);
    return await Promise.race([count, ended.then(() => null)]);
  };
  return {
    info,
    hasNetwork,
    closed: ended,
    changedFiles: countsChanges ? changedFiles : null,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    release,
    destroy() {
      leaving = leave({ type: "destroy" });
      return leaving;
    },
    [Symbol.asyncDispose]: release,
  };
}

const endedEarly = () => new CaissonError("unavailable", "the station closed the connection before the sandbox was ready");
