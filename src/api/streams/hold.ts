import { reachOfHeld } from "../../contract/api/reach.ts";
import { sandboxRoutes } from "../../contract/api/sandbox-routes.ts";
import { HoldClientMessage } from "../../contract/api/streams.ts";
import { auditName } from "../../contract/audit-text.ts";
import { CaissonError } from "../../contract/error.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import { checkReach } from "../gate.ts";
import { parseMessage, type ServerSocket } from "./server-socket.ts";
import type { ServeStream, Stream } from "./stream.ts";

/** Network events are dropped, and counted, while more than this waits to be sent. */
const BUFFERED_BYTES_MAX = 1024 * 1024;

export const serveCreateHeld: ServeStream = async (stream) => {
  const { socket, caller, station, signal, audit } = stream;
  const message = await socket.first(HoldClientMessage);
  if (message.type !== "create") throw new CaissonError("invalid", "the first message does not say which sandbox to create");
  const { type: _, ...request } = message;
  checkReach(caller, reachOfHeld(request));
  await audit("sandboxes.create", sandboxRoutes["sandboxes.create"].audited(request));
  const onNotice = (text: string) => void socket.send({ type: "notice", text });
  const givenUp = new AbortController();
  socket.listen({
    onMessage(given) {
      if (refuseCreate(parseMessage(HoldClientMessage, given)).type !== "ping") givenUp.abort();
    },
  });
  const isGivenUp = () => givenUp.signal.aborted;
  const creating = station.sandboxes.create(request, { signal: AbortSignal.any([signal, givenUp.signal]), onNotice });
  const held = await creating.catch((error: unknown) => {
    if (!isGivenUp()) throw error;
    return null;
  });
  if (held === null) await socket.send({ type: "released" });
  else await holdOn(held, stream, { isGivenUp });
};

function refuseCreate<Message extends { type: string }>(message: Message): Exclude<Message, { type: "create" }> {
  if (message.type === "create") throw new CaissonError("invalid", "this socket has its sandbox already");
  return message as Exclude<Message, { type: "create" }>;
}

export const serveHold: ServeStream = async (stream) => {
  const { station, params, signal, audit } = stream;
  await audit("sandboxes.hold");
  await holdOn(await station.sandboxes.hold(params.sandbox as string, { signal }), stream);
};

/** Until the client lets go, in whatever way, or the sandbox is gone. */
async function holdOn(held: HeldSandbox, stream: Stream, options: { isGivenUp?: () => boolean } = {}): Promise<void> {
  const { socket, signal, audit } = stream;
  const asked = Promise.withResolvers<"release" | "destroy" | "gone">();
  const tellChanges = changesTo(stream, held.id);
  const leave = () => asked.resolve("release");
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  const unsubscribe = held.network?.subscribe(networkTo(socket, held.id));
  let isGone = false;
  try {
    void socket.send({ type: "held", info: held.info, hasNetwork: held.network !== null, countsChanges: true, answersPings: true });
    void held.closed.then(() => asked.resolve("gone"));
    socket.listen({
      onMessage(given) {
        const { type } = refuseCreate(parseMessage(HoldClientMessage, given));
        if (type === "ping") return void socket.send({ type: "pong" });
        if (type === "changedFiles") tellChanges();
        else asked.resolve(type);
      },
    });
    // It was there before that could keep it from being made.
    if (options.isGivenUp?.()) asked.resolve("destroy");
    const how = await asked.promise;
    if (how === "destroy") {
      await audit("sandboxes.remove", { sandbox: auditName(held.id) });
      await held.destroy();
    }
    isGone = how !== "release";
    if (isGone) await socket.send({ type: "closed", ...(await held.closed) });
  } finally {
    signal.removeEventListener("abort", leave);
    unsubscribe?.();
    // There is nothing to leave alone any more: a kept sandbox's handle would say so.
    await held.release().catch((error: unknown) => {
      if (!isGone) throw error;
    });
  }
  await socket.send({ type: "released" });
}

/** Who asks again while they are counted has the same answer. */
function changesTo({ socket, station }: Stream, sandbox: string): () => void {
  let isCounting = false;
  return () => {
    if (isCounting) return;
    isCounting = true;
    const counted = station.sandboxes.changedFiles(sandbox).catch(() => null);
    void counted.then((changed) => {
      isCounting = false;
      return socket.send({ type: "changed", changed });
    });
  };
}

/** What a slow client does not get is counted, and it is told how much when it reads again. */
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
