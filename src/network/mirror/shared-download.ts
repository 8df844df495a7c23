import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { Draft } from "./cache.ts";
import { type DownloadHead, type DownloadOptions, download } from "./download.ts";

/** One download from a registry into the cache. Other readers of the same file share it. */
export interface SharedDownload {
  /** Throws like `download`. */
  readonly head: Promise<DownloadHead>;
  /** Resolves when the content is in the cache. Throws like `download`. */
  readonly cached: Promise<void>;
  /**
   * Holds back the last bytes until the whole content is verified. Until then, the part that was read looks truncated.
   * Throws like `download`.
   */
  read(): AsyncIterable<Buffer>;
  join(): void;
  /** The download of a file ends with its last reader. */
  leave(): void;
  cancel(): void;
}

type SharedDownloadOptions = Omit<DownloadOptions, "signal" | "onHead" | "onBytes"> & {
  /** Called once, when no further reader may join. */
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
    abort.abort(new CaissonError("cancelled", "the download was abandoned"));
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
  const why = "its readers await it";
  void ignore(head.promise, why);
  void ignore(cached, why);

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
