import { writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { RegistryName } from "../../contract/network/network.ts";
import { insideFolderOf, insideTarget } from "../../sandbox/inside-folder.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Emit } from "../egress/egress-options.ts";
import { insideSettings } from "../mirror/inside-settings.ts";
import { createMirror } from "../mirror/mirror.ts";
import type { InsideFile, Mirror, MirrorConnection } from "../mirror/mirror-options.ts";
import type { NetworkHost } from "../network-host.ts";
import { usePackages } from "./shared-packages.ts";

/** The mirror of the registries that the current policy names, created when a policy first names one. */
export interface LazyMirror {
  /** Writes the files that programs inside need to use it. */
  use(registries: readonly RegistryName[]): Promise<void>;
  handle(connection: MirrorConnection): void;
  serves(host: string, port: number): boolean;
  close(): Promise<void>;
}

export function createLazyMirror(options: {
  sandbox: OwnedSandbox;
  folder: string;
  host: NetworkHost;
  upstreamCa: readonly string[];
  emit: Emit;
}): LazyMirror {
  const { host } = options;
  let mirror: Mirror | null = null;
  let leave = async () => {};
  let served: readonly RegistryName[] = [];
  const make = () => {
    const use = usePackages(host, options.upstreamCa);
    leave = use.leave;
    return createMirror({ packages: use.packages, registries: () => served, upstreams: host.settings.registries, emit: options.emit });
  };
  return {
    async use(registries) {
      served = registries;
      if (registries.length === 0) return;
      mirror ??= make();
      for (const file of insideSettings(registries, host.settings.registries).files) await place(file, options);
    },
    handle(connection) {
      if (mirror === null) connection.stream.destroy();
      else mirror.handle(connection);
    },
    serves: (name, port) => mirror?.serves(name, port) ?? false,
    async close() {
      await mirror?.close();
      await leave();
    },
  };
}

/** Files elsewhere belong to the user, so an existing one is left unchanged. */
async function place(file: InsideFile, options: { sandbox: OwnedSandbox; folder: string }): Promise<void> {
  if (posix.dirname(file.path) === insideTarget) {
    await writeFile(join(insideFolderOf(options.folder), posix.basename(file.path)), file.text, { mode: 0o644 });
    return;
  }
  try {
    await options.sandbox.writeFile(file.path, Buffer.from(file.text), { how: "create", parents: true });
  } catch (error) {
    if (!(error instanceof CaissonError) || !["exists", "denied", "conflict", "not_found", "no_space"].includes(error.code)) throw error;
  }
}
