import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { defined } from "../../lib/defined.ts";
import { createTurns } from "../../lib/in-turn.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import { type Handlers, nothing, type SentEvent } from "../call.ts";
import { checkMatch, names, partOf } from "../conditions.ts";

type Name = Extract<keyof Handlers, `files.${string}`>;

/** Serializes conditional writes. */
const inTurn = createTurns();

export const fileHandlers: Handlers<Name> = {
  async "files.list"({ station, params, query, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, depth, limit, user } = query;
    return { json: await held.list(path, { signal, ...defined({ depth, entriesMax: limit, user }) }) };
  },
  async "files.remove"({ station, params, query, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, recursive, user } = query;
    await held.remove(path, { signal, ...defined({ recursive, user }) });
    return nothing;
  },
  async "files.read"({ station, params, query, conditions, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    return beginStream(held, async () => {
      const { path, user, offset, length } = query;
      const options = { signal, ...defined({ user }) };
      const release = () => held.release();
      const info = await held.stat(path, { ...options, follow: true });
      // Only a regular file has a meaningful size. Reading anything else reports why that is impossible.
      if (info.kind !== "file") return { bytes: await held.readFile(path, { ...options, ...defined({ offset, length }) }), release };
      const etag = etagOfFile(info);
      if (conditions.ifNoneMatch !== null && names(conditions.ifNoneMatch, etag, { weakly: true })) {
        await release();
        return { unchanged: { etag } };
      }
      const wholeBytes = info.sizeBytes;
      // The part that the query names takes precedence; `Range` applies to whole files.
      const isWhole = offset === undefined && length === undefined;
      const part = isWhole ? partOf(conditions, { sizeBytes: wholeBytes, etag }) : null;
      const from = Math.min(part?.offset ?? offset ?? 0, wholeBytes);
      const sizeBytes = Math.min(part?.length ?? length ?? wholeBytes, wholeBytes - from);
      const content = conditions.isHead ? [] : await held.readFile(path, { ...options, offset: from, length: sizeBytes });
      return {
        bytes: content as AsyncIterable<Uint8Array>,
        sizeBytes,
        etag,
        ...(part !== null && { part: { offset: from, wholeBytes } }),
        release,
      };
    });
  },
  async "files.write"({ station, params, query, body, conditions, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...options } = query;
    const write = () => held.writeFile(path, body, { signal, ...defined(options) });
    if (conditions.ifMatch === null && conditions.ifNoneMatch === null) return { json: await write() };
    // Of two writers that expect the same version, the second finds the file changed.
    const json = await inTurn(`${held.id} ${path}`, async () => {
      const entry = await foundOrNull(held.stat(path, { signal, follow: true, ...defined({ user: query.user }) }));
      checkMatch(conditions, entry === null ? null : etagOfFile(entry));
      return await write();
    });
    return { json };
  },
  async "files.info"({ station, params, query, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...options } = query;
    return { json: await held.stat(path, { signal, ...defined(options) }) };
  },
  async "files.makeFolder"({ station, params, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...options } = body;
    await held.mkdir(path, { signal, ...defined(options) });
    return nothing;
  },
  async "files.move"({ station, params, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { from, to, ...options } = body;
    await held.move(from, to, { signal, ...defined(options) });
    return nothing;
  },
  async "files.watch"({ station, params, query, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    return beginStream(held, async () => {
      const { path, ...options } = query;
      const watch = await held.watch(path, { signal, ...defined(options) });
      const close = () => watch.close();
      signal.addEventListener("abort", close, { once: true });
      return {
        events: changesOf(watch),
        async release() {
          signal.removeEventListener("abort", close);
          close();
          await held.release();
        },
      };
    });
  },
  async "files.pack"({ station, params, query, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    return beginStream(held, async () => {
      const { path, ...options } = query;
      return { bytes: await held.tarOut(path, { signal, ...defined(options) }), release: () => held.release() };
    });
  },
  async "files.unpack"({ station, params, query, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...options } = query;
    return { json: await held.tarIn(path, body, { signal, ...defined(options) }) };
  },
};

/** Releases the sandbox if the stream cannot be started. */
async function beginStream<Stream>(held: HeldSandbox, begin: () => Promise<Stream>): Promise<Stream> {
  try {
    return await begin();
  } catch (error) {
    await held.release();
    throw error;
  }
}

async function* changesOf<Change extends { kind: string }>(changes: AsyncIterable<Change>): AsyncGenerator<SentEvent<Change>> {
  for await (const change of changes) yield { type: change.kind, data: change };
}

/** As precise as the modification time, which is in milliseconds. */
function etagOfFile({ sizeBytes, modifiedMs }: { sizeBytes: number; modifiedMs: number }): string {
  return `"${sizeBytes.toString(36)}-${modifiedMs.toString(36)}"`;
}
