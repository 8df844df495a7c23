import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

/** The kernel's limit for the path of a socket, without the NUL. */
const SOCKET_PATH_BYTES = 107;

/**
 * Returns a path short enough for a socket. A longer path goes through a descriptor of its folder, which stays open
 * until `close`. Throws the file system's own error if the folder does not exist.
 */
export function shortSocketPath(path: string): { path: string; close: () => void } {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}
