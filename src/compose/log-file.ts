import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, renameSync, writeSync } from "node:fs";
import { ignoring, isErrno } from "../lib/failures.ts";

const BYTES_MAX = 10 * 1024 * 1024;
const FORMER_MAX = 4;

export interface LogFile extends Disposable {
  /** Never throws: failing to write the log must not stop the station. */
  write(line: string): void;
}

/**
 * A log file of bounded size. On rotation its content moves to `FILE.1`, that file's to `FILE.2`, and so on. The file
 * is truncated rather than renamed, so other processes that have it open keep appending to it.
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
      ignoring("the disk is full, which requests report", () => {
        if (bytes >= bytesMax) rotate();
        bytes += writeSync(fd, line);
      });
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
