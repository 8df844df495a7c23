import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

/** What the kernel takes as the path of a socket, without the NUL. */
const SOCKET_PATH_BYTES = 107;

/**
 * A path of any length as one that a socket can have: a longer one is said by way of its folder, which is open until
 * `close`. Throws the file system's own error for a folder that is not there.
 */
export function shortSocketPath(path: string): { path: string; close: () => void } {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}
