import { CaissonError } from "../../contract/error/error.ts";
import type { Watch, WatchEvent, WatchKind } from "../sandbox.ts";
import { decodeFields, type Encodable, shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { Link, StreamHandler } from "./link.ts";
import { openAndWait } from "./request.ts";
import { ANSWER_BOUND } from "./waits.ts";

const kinds: readonly (WatchKind | undefined)[] = [undefined, "created", "modified", "removed", "movedHere", "attributes", "overflow"];

/**
 * The number of events that may wait for a slow consumer. Beyond it, one `overflow` replaces them: the consumer must
 * look again.
 */
const WATCH_QUEUE_MAX = 4_096;

/** Starts a watch. `toPath` converts the guest's path to the caller's. */
export function startWatch(
  link: Link,
  request: { values: Encodable<typeof shapes.WATCH>; what: string; signal?: AbortSignal | undefined; toPath?: (path: string) => string },
): Promise<Watch> {
  return new Promise((resolve, reject) => {
    let accepted = false;
    const events = new EventQueue(() => link.cancel(stream, encodeFrame("CANCEL", stream)));
    const handler: StreamHandler = {
      onFrame(code, payload) {
        // Only the answer has a time limit: events may be far apart.
        wait.end();
        if (code === frameCode.ERROR) {
          const error = errorFromGuest(request.what, payload);
          if (accepted) events.end(error);
          else reject(error);
          return true;
        }
        if (code === frameCode.OK && !accepted) {
          accepted = true;
          resolve(events);
        } else if (code === frameCode.WATCH_EVENT && accepted) {
          const { kind: number, path, isDirectory } = decodeFields("WATCH_EVENT", shapes.WATCH_EVENT, payload);
          const kind = kinds[number];
          if (kind === undefined) throw protocolError(`a watch event of kind ${number}`);
          events.push({ kind, path: request.toPath?.(path) ?? path, isDirectory });
        } else throw protocolError(`${frameName(code)} as an answer to WATCH`);
        return false;
      },
      onLost(error) {
        if (accepted) events.end(null);
        else reject(error);
      },
    };
    const { stream, wait } = openAndWait(link, handler, { ...request, type: "WATCH", bound: ANSWER_BOUND, onGivenUp: reject });
  });
}

export class EventQueue implements Watch {
  readonly #cancel: () => void;
  #events: WatchEvent[] = [];
  #waiting: PromiseWithResolvers<IteratorResult<WatchEvent, undefined>> | null = null;
  #ended = false;
  #failure: CaissonError | null = null;

  constructor(cancel: () => void) {
    this.#cancel = cancel;
  }

  push(event: WatchEvent): void {
    if (this.#ended) return;
    if (this.#waiting !== null) {
      this.#waiting.resolve({ done: false, value: event });
      this.#waiting = null;
    } else if (this.#events.length < WATCH_QUEUE_MAX) this.#events.push(event);
    else this.#events = [{ kind: "overflow", path: "", isDirectory: false }];
  }

  end(error: CaissonError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = error;
    if (error === null) this.#waiting?.resolve({ done: true, value: undefined });
    else this.#waiting?.reject(error);
    this.#waiting = null;
  }

  close(): void {
    if (this.#ended) return;
    this.end(null);
    this.#events = [];
    this.#cancel();
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchEvent, undefined> {
    return {
      next: () => this.#next(),
      return: () => {
        this.close();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #next(): Promise<IteratorResult<WatchEvent, undefined>> {
    const value = this.#events.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    if (this.#waiting !== null) return Promise.reject(new CaissonError("invalid", "a watch has one reader at a time"));
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }
}
