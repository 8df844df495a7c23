import type { LookupFunction } from "node:net";
import type { RegistryName } from "../../contract/network.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";
import type { Emit } from "../egress/egress-options.ts";
import type { Get } from "./package-upstream.ts";
import type { Packages } from "./packages.ts";

/** What is shared by all mirrors of a process: one cache on disk, and one download of a thing at a time. */
export interface PackagesOptions {
  /** A folder of the host's, made with mode 0700. Many processes may use it at once. */
  cacheDir: string;
  /** The least recently used go first when the cache grows past this. Default 10 GiB. */
  bytesMax?: number;
  /**
   * Nothing is asked of a registry: what is kept is served however old it is, and all else is refused with that reason.
   */
  offline?: boolean;
  /**
   * Resolves names of registries; the place to refuse addresses that must not be reached. Redirects to bare addresses
   * are refused before.
   */
  lookup?: LookupFunction;
  /** PEMs trusted besides the default ones. */
  ca?: readonly string[];
  /** In the place of node:http and node:https, for tests. */
  get?: Get;
}

interface ServingOptions {
  /** Which registries are served; a function is asked at each request, since a policy may change. */
  registries: readonly RegistryName[] | (() => readonly RegistryName[]);
  /** Base URLs of the registries to read from, when not the public ones. */
  upstreams?: Partial<Record<RegistryName, string>>;
  emit: Emit;
  /** How programs inside call the mirror, with neither path nor final slash. Default: MIRROR_PORT of loopback. */
  origin?: string;
}

/**
 * With `packages`, which `openPackages` makes and its maker closes, several mirrors of a process share one cache and
 * its downloads; otherwise a mirror has its own.
 */
export type MirrorOptions = ServingOptions & ({ packages: Packages } | PackagesOptions);

export interface Mirror {
  /**
   * Takes a connection of the mirror's port, or a plain-HTTP connection meant for a host of which `plain` is true.
   * Never throws.
   */
  handle(connection: InboundConnection): void;
  /** Variables that lead the package programs inside to the mirror. */
  readonly env: Readonly<Record<string, string>>;
  /** Files that lead those programs to it which no variable can, by their absolute path inside; readable by all. */
  readonly files: readonly InsideFile[];
  /** Whether plain-HTTP requests for this host should be handed to `handle` instead of going out. */
  plain(host: string): boolean;
  /** Ends every connection. */
  close(): Promise<void>;
}

export interface InsideFile {
  path: string;
  text: string;
}
