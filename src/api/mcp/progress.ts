import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { ignore } from "../../lib/failures.ts";

/** The minimum and maximum time between two progress messages. Many clients give up on a silent server. */
const PAUSE_MS = 100;
const SILENCE_MS = 10_000;
const MESSAGE_CHARACTERS_MAX = 1000;

/** The progress messages of a long call. */
export interface Progress {
  /** Queues a line. Lines that arrive faster than they can be sent are combined, and the oldest are dropped. */
  tell(text: string): void;
  /** Resolves when the last message has been sent. */
  end(): Promise<void>;
}

type Extra = Pick<RequestHandlerExtra<ServerRequest, ServerNotification>, "_meta" | "sendNotification" | "signal">;

/**
 * Reports progress to a client that sent a token for it. Sends one message at a time, so that a slow client costs no
 * memory.
 */
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
    const sending = sendNotification({ method: "notifications/progress", params: { progressToken, progress: count, message } });
    await ignore(sending, "the client has disconnected; the call's signal ends the call");
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
