/** What one known layout of a toolchain in the user's home makes visible inside, at the same absolute paths. */
export interface Toolchain {
  name: string;
  /** Folders and files mounted read-only. */
  mounts: string[];
  /** Goes into PATH inside, in this order. */
  path: string[];
  /** Paths below the mounts that are covered, as they may hold credentials. */
  hidden?: string[];
  env?: Record<string, string>;
  /** Empty folders that its programs insist on. */
  folders?: string[];
  /** Links at the paths of the host's own, to what is mounted. */
  links?: { path: string; target: string }[];
  /** Small files written anew instead of the user's own. */
  files?: { path: string; content: string }[];
  /** For the doctor: what was left out. */
  note?: string;
}

/** What a layout makes of a folder on PATH, given relative to the home; null when it is another's. */
export type Layout = (rest: string, home: string) => Toolchain | null;
