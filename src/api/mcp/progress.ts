import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";

/** How often a client is told at most, and how long it hears nothing at most: many give up on silence. */
const PAUSE_MS = 100;
const SILENCE_MS = 10_000;
const MESSAGE_CHARACTERS_MAX = 1000;

/** What a call that takes a while says meanwhile. */
export interface Progress {
  /** Lines that come faster than they are taken are told together; of too many, the last. */
  tell(text: string): void;
  /** Resolves when the last word is out. */
  end(): Promise<void>;
}

type Extra = Pick<RequestHandlerExtra<ServerRequest, ServerNotification>, "_meta" | "sendNotification" | "signal">;

/** Tells a client that gave a token for it; one at a time, so that a slow client costs no memory. */
export function createProgress({ _meta, sendNotification, signal }: Extra): Progress {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return { tell() {}, async end() {} };
  const startedMs = performance.now();
  let count = 0;
  let waiting = "";
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  const send = async () => {
    const message = waiting === "" ? `working for ${Math.round((performance.now() - startedMs) / 1000)} s` : waiting;
    waiting = "";
    count += 1;
    // A client that went away is told nothing more; the call hears of it by its signal.
    await sendNotification({ method: "notifications/progress", params: { progressToken, progress: count, message } }).catch(() => {});
  };
  const schedule = (delayMs: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      sending = send().then(() => {
        sending = undefined;
        if (!ended && !signal.aborted) schedule(waiting === "" ? SILENCE_MS : PAUSE_MS);
      });
    }, delayMs);
  };
  schedule(SILENCE_MS);
  return {
    tell(text) {
      if (ended || text === "") return;
      const isFirst = waiting === "";
      waiting = lastCharacters(isFirst ? text : `${waiting}\n${text}`);
      if (isFirst && sending === undefined) schedule(PAUSE_MS);
    },
    async end() {
      ended = true;
      clearTimeout(timer);
      await sending;
      if (waiting !== "" && !signal.aborted) await send();
    },
  };
}

function lastCharacters(text: string): string {
  return text.length <= MESSAGE_CHARACTERS_MAX ? text : `…${text.slice(1 - MESSAGE_CHARACTERS_MAX)}`.toWellFormed();
}
