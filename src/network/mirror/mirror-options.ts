import type { LookupFunction } from "node:net";
import type { Duplex } from "node:stream";
import type { RegistryName } from "../../contract/network.ts";
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
}

/**
 * With `packages`, which `openPackages` makes and its maker closes, several mirrors of a process share one cache and
 * its downloads; otherwise a mirror has its own.
 */
export type MirrorOptions = ServingOptions & ({ packages: Packages } | PackagesOptions);

export interface Mirror {
  /** Takes a connection that was meant for a host and port that it serves. Never throws. */
  handle(connection: MirrorConnection): void;
  /**
   * Whether connections to this host and port are to be handed to `handle` instead of going out. `host` is in lower
   * case.
   */
  serves(host: string, port: number): boolean;
  /** Ends every connection. */
  close(): Promise<void>;
}

export interface MirrorConnection {
  /** HTTP in clear: TLS, if there was any, ended before. */
  stream: Duplex;
  /** As the program inside calls it, such as `https://host:port/`. */
  origin: URL;
}

/** What a package program inside reads where no variable will do, by its absolute path; readable by all. */
export interface InsideFile {
  path: string;
  text: string;
}
