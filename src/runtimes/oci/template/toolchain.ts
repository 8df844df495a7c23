/** What a known layout of a toolchain in the user's home makes visible inside, at the same absolute paths. */
export interface Toolchain {
  name: string;
  /** Folders and files mounted read-only. */
  mounts: string[];
  /** Added to PATH inside, in this order. */
  path: string[];
  /** Paths below the mounts that are hidden, since they may contain credentials. */
  hidden?: string[];
  env?: Record<string, string>;
  /** Empty folders that its programs require. */
  folders?: string[];
  /** Links at the host's paths that lead to what is mounted. */
  links?: { path: string; target: string }[];
  /** Small files that replace the user's. */
  files?: { path: string; content: string }[];
  /** What was left out, for the doctor. */
  note?: string;
}

/** Recognizes a folder on PATH, given relative to the home. Returns null if it has another layout. */
export type Layout = (rest: string, home: string) => Toolchain | null;
