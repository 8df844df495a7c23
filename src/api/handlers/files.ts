import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

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
    try {
      const { path, ...asked } = query;
      return { bytes: await held.readFile(path, { signal, ...defined(asked) }), release: () => held.release() };
    } catch (error) {
      await held.release();
      throw error;
    }
  },
  async "files.write"({ station, params, query, body, signal }) {
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    const { path, ...asked } = query;
    return { json: await held.writeFile(path, body, { signal, ...defined(asked) }) };
  },
};
