import { reachOfHeld } from "../../contract/api/required-scopes.ts";
import { HoldClientMessage } from "../../contract/api/streams.ts";
import { auditName } from "../../contract/audit/audit-text.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import { sandboxes } from "../../verbs/sandboxes.ts";
import { checkReach } from "../gate.ts";
import { parseMessage, type ServerSocket } from "./server-socket.ts";
import type { ServeStream, Stream } from "./stream.ts";

/** While more than this is buffered, network events are dropped and counted. */
const BUFFERED_BYTES_MAX = 1024 * 1024;

export const serveCreateHeld: ServeStream = async (stream) => {
  const { socket, caller, station, signal, audit } = stream;
  const message = await socket.first(HoldClientMessage);
  if (message.type !== "create") throw new CaissonError("invalid", "the first message must specify the sandbox to create");
  const { type: _, ...request } = message;
  checkReach(caller, reachOfHeld(request));
  await audit("sandboxes.create", sandboxes.create.audited(request));
  const onNotice = (text: string) => void socket.send({ type: "notice", text });
  const givenUp = new AbortController();
  socket.listen({
    onMessage(raw) {
      if (refuseCreate(parseMessage(HoldClientMessage, raw)).type !== "ping") givenUp.abort();
    },
  });
  const isGivenUp = () => givenUp.signal.aborted;
  const creating = station.sandboxes.create(request, { signal: AbortSignal.any([signal, givenUp.signal]), onNotice });
  const held = await creating.catch((error: unknown) => {
    if (!isGivenUp()) throw error;
    return null;
  });
  if (held === null) await socket.send({ type: "released" });
  else await holdUntilReleased(held, stream, { isGivenUp });
};

function refuseCreate<Message extends { type: string }>(message: Message): Exclude<Message, { type: "create" }> {
  if (message.type === "create") throw new CaissonError("invalid", "this socket already has its sandbox");
  return message as Exclude<Message, { type: "create" }>;
}

export const serveHold: ServeStream = async (stream) => {
  const { station, params, signal, audit } = stream;
  await audit("sandboxes.hold");
  await holdUntilReleased(await station.sandboxes.hold(params.sandbox as string, { signal }), stream);
};

/** Serves the handle until the client releases it, in any way, or the sandbox no longer exists. */
async function holdUntilReleased(held: HeldSandbox, stream: Stream, options: { isGivenUp?: () => boolean } = {}): Promise<void> {
  const { socket, signal, audit } = stream;
  const ending = Promise.withResolvers<"release" | "destroy" | "gone">();
  const tellChanges = changesTo(stream, held.id);
  const leave = () => ending.resolve("release");
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  const unsubscribe = held.network?.subscribe(networkTo(socket, held.id));
  let isGone = false;
  try {
    void socket.send({ type: "held", info: held.info, hasNetwork: held.network !== null, countsChanges: true, answersPings: true });
    void held.closed.then(() => ending.resolve("gone"));
    socket.listen({
      onMessage(raw) {
        const { type } = refuseCreate(parseMessage(HoldClientMessage, raw));
        if (type === "ping") return void socket.send({ type: "pong" });
        if (type === "changedFiles") tellChanges();
        else ending.resolve(type);
      },
    });
    // The client gave up the sandbox during its creation, but too late to prevent it.
    if (options.isGivenUp?.()) ending.resolve("destroy");
    const how = await ending.promise;
    if (how === "destroy") {
      await audit("sandboxes.remove", { sandbox: auditName(held.id) });
      await held.destroy();
    }
    isGone = how !== "release";
    if (isGone) await socket.send({ type: "closed", ...(await held.closed) });
  } finally {
    signal.removeEventListener("abort", leave);
    unsubscribe?.();
    // If the sandbox is gone, there is nothing to release, and the handle of a kept sandbox throws.
    await held.release().catch((error: unknown) => {
      if (!isGone) throw error;
    });
  }
  await socket.send({ type: "released" });
}

/** Counts changed files on request. Requests during a count share its answer. */
function changesTo({ socket, station }: Stream, sandbox: string): () => void {
  let isCounting = false;
  return () => {
    if (isCounting) return;
    isCounting = true;
    const counted = ignore(station.sandboxes.changedFiles(sandbox), "the count is optional");
    void counted.then((changed) => {
      isCounting = false;
      return socket.send({ type: "changed", changed: changed ?? null });
    });
  };
}

/**
 * Sends network events. Those that a slow client misses are counted, and it receives the number when it reads again.
 */
function networkTo(socket: ServerSocket, sandbox: string) {
  let dropped = 0;
  return (event: unknown) => {
    if (socket.bufferedBytes() > BUFFERED_BYTES_MAX) {
      dropped += 1;
      return;
    }
    if (dropped > 0) void socket.send({ type: "dropped", events: dropped });
    dropped = 0;
    void socket.send({ type: "network", sandbox, event });
  };
}
