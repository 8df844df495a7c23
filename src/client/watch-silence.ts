import { CaissonError } from "../contract/error/error.ts";
import type { StreamSocket } from "./stream-socket.ts";

/** How long a connection may be silent before we ping it, and how long it then has to answer. */
export const SILENCE_MS = 10_000;

export interface SilenceWatch {
  /** Resolves, as a closed socket does, when the other side does not respond. */
  readonly fallen: Promise<{ error: CaissonError }>;
  hasFallen(): boolean;
  /** Call for everything received. */
  reset(): void;
}

/** Pings a silent connection, and gives it up if it does not answer. */
export function watchSilence(socket: StreamSocket, silenceMs: number): SilenceWatch {
  const fallen = Promise.withResolvers<{ error: CaissonError }>();
  let isAsked = false;
  let hasFallen = false;
  let timer = setTimeout(onSilence, silenceMs);
  void socket.closed.then(() => clearTimeout(timer));
  function onSilence(): void {
    if (isAsked) {
      hasFallen = true;
      const hint = "Check the network connection to the station; `caisson status` shows whether the station answers.";
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
    reset() {
      if (hasFallen) return;
      isAsked = false;
      clearTimeout(timer);
      timer = setTimeout(onSilence, silenceMs);
    },
  };
}
