import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, renameSync, writeSync } from "node:fs";
import { isErrno } from "../lib/is-errno.ts";

const BYTES_MAX = 10 * 1024 * 1024;
const FORMER_MAX = 4;

export interface LogFile extends Disposable {
  /** Never throws: a log that cannot be written stops nothing. */
  write(line: string): void;
}

/**
 * A file that grows to a bound; then its content is `FILE.1`, what that was is `FILE.2`, and so on. It is emptied
 * rather than moved away, so that whoever else has it open to append goes on in it.
 */
export function openLogFile(path: string, { bytesMax = BYTES_MAX, formerMax = FORMER_MAX } = {}): LogFile {
  const fd = openSync(path, "a", 0o600);
  let bytes = fstatSync(fd).size;
  const rotate = () => {
    for (let number = formerMax - 1; number >= 1; number--) moveIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    copyFileSync(path, `${path}.1`);
    ftruncateSync(fd, 0);
    bytes = 0;
  };
  return {
    write(line) {
      try {
        if (bytes >= bytesMax) rotate();
        bytes += writeSync(fd, line);
      } catch {
        // The disk is full, most likely, which others will tell.
      }
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}
