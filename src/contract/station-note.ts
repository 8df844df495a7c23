import { join } from "node:path";

/** Where the station of a state folder listens, and where it says what it is. */
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

/** What a station leaves beside its socket, so that a command knows without asking whether it can be used. */
export interface StationNote {
  pid: number;
  version: string;
  protocol: number;
  /** The configuration it works with, as `settingsText` writes it. */
  settings: string;
}

/** Null for what is no such note. Without a schema: every command reads it before it has loaded one. */
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
