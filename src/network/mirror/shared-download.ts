import { CaissonError } from "../../contract/error.ts";
import type { Draft } from "./cache.ts";
import { type DownloadHead, type DownloadOptions, download } from "./download.ts";

/** One download from a registry into the cache. Whoever wants the same thing meanwhile reads along. */
export interface SharedDownload {
  /** Throws as `download`. */
  readonly head: Promise<DownloadHead>;
  /** When it is in the cache. Throws as `download`. */
  readonly cached: Promise<void>;
  /**
   * The last bytes come only when the whole was found to be what it must be; until then, what was read looks cut off.
   * Throws as `download`.
   */
  read(): AsyncIterable<Buffer>;
  join(): void;
  /** When nobody is left, the download of a file ends, too. */
  leave(): void;
  cancel(): void;
}

type SharedDownloadOptions = Omit<DownloadOptions, "signal" | "onHead" | "onBytes"> & {
  /** Called once, when nobody may join any more. */
  onOver: () => void;
};

const HELD_BACK_BYTES = 16 * 1024;
const CHUNK_BYTES = 128 * 1024;

export function startSharedDownload(options: SharedDownloadOptions): SharedDownload {
  const abort = new AbortController();
  const head = Promise.withResolvers<DownloadHead>();
  let moved = Promise.withResolvers<void>();
  let draft: Draft | null = null;
  let ended: "no" | "well" | { error: unknown } = "no";
  let readers = 0;
  let over = false;
  const wake = () => {
    moved.resolve();
    moved = Promise.withResolvers();
  };
  const end = (how: typeof ended) => {
    ended = how;
    if (!over) options.onOver();
    over = true;
    closeUnused();
    wake();
  };
  const closeUnused = () => {
    if (ended !== "no" && readers === 0) void draft?.close();
  };
  const cancel = () => {
    if (!over) options.onOver();
    over = true;
    abort.abort(new CaissonError("cancelled", "nobody reads it any more"));
  };
  const cached = download({
    ...options,
    signal: abort.signal,
    onHead(answer) {
      if (answer.kind === "content") draft = answer.draft;
      head.resolve(answer);
    },
    onBytes: wake,
  }).then(
    () => end("well"),
    (error: unknown) => {
      head.reject(error);
      end({ error });
      throw error;
    },
  );
  // Whoever joined hears of it by what they wait for.
  head.promise.catch(() => undefined);
  cached.catch(() => undefined);

  return {
    head: head.promise,
    cached,
    read: () =>
      follow({
        available: () => (draft === null ? 0 : ended === "well" ? draft.bytes : draft.bytes - HELD_BACK_BYTES),
        part: (position, bytes) => (draft as Draft).read(position, bytes),
        ended: () => ended,
        moved: () => moved.promise,
      }),
    join() {
      readers++;
    },
    leave() {
      readers--;
      if (readers === 0 && options.resource.rewrite === undefined && ended === "no") {
        cancel();
      }
      closeUnused();
    },
    cancel,
  };
}

interface Followed {
  available: () => number;
  part: (position: number, bytes: number) => Promise<Buffer>;
  ended: () => "no" | "well" | { error: unknown };
  moved: () => Promise<void>;
}

async function* follow({ available, part, ended, moved }: Followed): AsyncGenerator<Buffer, void> {
  for (let position = 0; ; ) {
    const now = ended();
    if (now !== "no" && now !== "well") throw now.error;
    const end = Math.min(available(), position + CHUNK_BYTES);
    if (end > position) {
      yield await part(position, end - position);
      position = end;
    } else if (now === "well") return;
    else await moved();
  }
}
