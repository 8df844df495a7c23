import type { LookupFunction } from "node:net";
import type { Duplex } from "node:stream";
import type { RegistryName } from "../../contract/network/network.ts";
import type { Emit } from "../egress/egress-options.ts";
import type { Get } from "./package-upstream.ts";
import type { Packages } from "./packages.ts";

/** The options that all mirrors of a process share: one cache on disk, and one download per resource at a time. */
export interface PackagesOptions {
  /** A folder on the host, created with mode 0700. Many processes may use it at once. */
  cacheDir: string;
  /** The size limit of the cache, beyond which the least recently used entries are evicted. Default: 10 GiB. */
  bytesMax?: number;
  /** Sends no requests to registries. Serves cached content regardless of its age, and refuses all other requests. */
  offline?: boolean;
  /**
   * Resolves the names of registries, and may refuse forbidden addresses. Redirects to bare addresses are refused
   * before.
   */
  lookup?: LookupFunction;
  /** PEM certificates to trust in addition to the default ones. */
  ca?: readonly string[];
  /** Replaces node:http and node:https in tests. */
  get?: Get;
}

interface ServingOptions {
  /** The registries to serve. A function is called for each request, because the policy may change. */
  registries: readonly RegistryName[] | (() => readonly RegistryName[]);
  /** Base URLs of the registries to read from, if not the public ones. */
  upstreams?: Partial<Record<RegistryName, string>>;
  emit: Emit;
}

/**
 * With `packages`, which `openPackages` creates and its caller closes, the mirrors of a process share one cache and its
 * downloads. Otherwise a mirror has its own.
 */
export type MirrorOptions = ServingOptions & ({ packages: Packages } | PackagesOptions);

export interface Mirror {
  /** Handles a connection to a host and port that it serves. Never throws. */
  handle(connection: MirrorConnection): void;
  /**
   * Whether connections to this host and port must be passed to `handle` instead of leaving the sandbox. `host` is in
   * lower case.
   */
  serves(host: string, port: number): boolean;
  /** Ends every connection. */
  close(): Promise<void>;
}

export interface MirrorConnection {
  /** Plain HTTP: TLS, if any, was terminated before. */
  stream: Duplex;
  /** The origin that the program inside requested, such as `https://host:port/`. */
  origin: URL;
}

/**
 * A file for a package program inside, if variables do not suffice to configure it. The path is absolute, and every
 * user inside can read the file.
 */
export interface InsideFile {
  path: string;
  text: string;
}
