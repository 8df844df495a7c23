import { join } from "node:path";
import type { RegistryName } from "../contract/network.ts";
import type { InboundConnection } from "../sandbox/sandbox.ts";
import type { Emit } from "./egress/emit.ts";
import { createMirror, type Mirror } from "./mirror/mirror.ts";
import type { NetworkHost } from "./network-host.ts";

/** The mirror of the registries that the policy of now names; none while it names none. */
export interface KeptMirror {
  use(registries: readonly RegistryName[]): void;
  handle(connection: InboundConnection): void;
  plain(host: string): boolean;
  close(): Promise<void>;
}

export function keepMirror(options: { host: NetworkHost; upstreamCa: readonly string[]; emit: Emit }): KeptMirror {
  const { host, emit, upstreamCa } = options;
  let mirror: Mirror | null = null;
  let used = "";
  const replace = (next: Mirror | null) => {
    const before = mirror;
    mirror = next;
    return before?.close();
  };
  return {
    use(registries) {
      const wanted = registries.toSorted().join();
      if (wanted === used) return;
      used = wanted;
      const { mirrorBytesMax, registries: upstreams } = host.settings;
      void replace(
        wanted === ""
          ? null
          : createMirror({
              cacheDir: join(host.stateDir, "mirror"),
              registries: [...registries],
              upstreams,
              emit,
              ca: upstreamCa,
              ...(mirrorBytesMax === undefined ? {} : { bytesMax: mirrorBytesMax }),
            }),
      );
    },
    handle(connection) {
      if (mirror === null) connection.stream.destroy();
      else mirror.handle(connection);
    },
    plain: (name) => mirror?.plain(name) ?? false,
    close: async () => replace(null),
  };
}
