import { join } from "node:path";

/** Returns the paths of a state folder's station: its socket, lock, note and stored answers. */
export function stationFolder(stateDir: string) {
  const folder = join(stateDir, "station");
  return {
    folder,
    socketPath: join(folder, "socket"),
    lockPath: join(folder, "lock"),
    notePath: join(folder, "station.json"),
    answersPath: join(folder, "answers.db"),
  };
}

/**
 * The note that a station writes next to its socket. It tells a command, without a request, whether it can use the
 * station.
 */
export interface StationNote {
  pid: number;
  version: string;
  protocol: number;
  /** The station's configuration, from `settingsText`. */
  settings: string;
}

/** Parses a note; returns null if it is invalid. Uses no schema, since every command reads it before loading any. */
export function readStationNote(text: string): StationNote | null {
  try {
    const note = JSON.parse(text) as Partial<StationNote> | null;
    const { pid, version, protocol, settings } = note ?? {};
    const isNote =
      Number.isSafeInteger(pid) &&
      Number(pid) > 0 &&
      typeof version === "string" &&
      Number.isSafeInteger(protocol) &&
      typeof settings === "string";
    return isNote ? (note as StationNote) : null;
  } catch {
    return null;
  }
}
