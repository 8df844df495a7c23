import { CaissonError } from "../contract/error.ts";
import type { StreamSocket } from "./stream-socket.ts";

/** A connection that was silent for so long is asked for a sign of life, and has as long again to give one. */
export const SILENCE_MS = 10_000;

export interface SilenceWatch {
  /** Resolves, as a closed socket does, when the other side gives no sign of life. */
  readonly fallen: Promise<{ error: CaissonError }>;
  hasFallen(): boolean;
  /** To be told of everything that comes. */
  heard(): void;
}

/** Asks a connection that says nothing for a sign of life, and gives one up that has none left. */
export function watchSilence(socket: StreamSocket, silenceMs: number): SilenceWatch {
  const fallen = Promise.withResolvers<{ error: CaissonError }>();
  let isAsked = false;
  let hasFallen = false;
  let timer = setTimeout(onSilence, silenceMs);
  void socket.closed.then(() => clearTimeout(timer));
  function onSilence(): void {
    if (isAsked) {
      hasFallen = true;
      const hint = "Check the network between here and the station; `caisson status` shows whether it answers.";
      fallen.resolve({ error: new CaissonError("unavailable", "the connection to the station fell silent", { hint }) });
      socket.abandon();
      return;
    }
    isAsked = true;
    socket.send({ type: "ping" });
    timer = setTimeout(onSilence, silenceMs);
  }
  return {
    fallen: fallen.promise,
    hasFallen: () => hasFallen,
    heard() {
      if (hasFallen) return;
      isAsked = false;
      clearTimeout(timer);
      timer = setTimeout(onSilence, silenceMs);
    },
  };
}
