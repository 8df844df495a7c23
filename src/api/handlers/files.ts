import { defined } from "../../lib/defined.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import { type Handlers, nothing, type SentEvent } from "../call.ts";

type Name = Extract<keyof Handlers, `files.${string}`>;

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
  async "files.read"({ station, params, query, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    return streamed(held, async () => {
      const { path, ...asked } = query;
      return { bytes: await held.readFile(path, { signal, ...defined(asked) }), release: () => held.release() };
    });
  },
  async "files.write"({ station, params, query, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...asked } = query;
    return { json: await held.writeFile(path, body, { signal, ...defined(asked) }) };
  },
  async "files.info"({ station, params, query, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...asked } = query;
    return { json: await held.stat(path, { signal, ...defined(asked) }) };
  },
  async "files.makeFolder"({ station, params, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...asked } = body;
    await held.mkdir(path, { signal, ...defined(asked) });
    return nothing;
  },
  async "files.move"({ station, params, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { from, to, ...asked } = body;
    await held.move(from, to, { signal, ...defined(asked) });
    return nothing;
  },
  async "files.watch"({ station, params, query, signal }) {
    const held = await station.sandboxes.hold(params.sandbox, { signal });
    return streamed(held, async () => {
      const { path, ...asked } = query;
      const watch = await held.watch(path, { signal, ...defined(asked) });
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
    return streamed(held, async () => {
      const { path, ...asked } = query;
      return { bytes: await held.tarOut(path, { signal, ...defined(asked) }), release: () => held.release() };
    });
  },
  async "files.unpack"({ station, params, query, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...asked } = query;
    return { json: await held.tarIn(path, body, { signal, ...defined(asked) }) };
  },
};

/** Lets go of the sandbox where no stream comes of it. */
async function streamed<Stream>(held: HeldSandbox, begin: () => Promise<Stream>): Promise<Stream> {
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
