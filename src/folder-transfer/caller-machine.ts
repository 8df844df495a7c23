import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { MachineId } from "../contract/upload/upload.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../lib/failures.ts";
import { randomLetters } from "../lib/new-id.ts";
import { realPathOrNull } from "../lib/paths.ts";

const FOLDER = "elsewhere";
const ID_LETTERS = 26;
/** How many sent folders to remember; the oldest are dropped. */
const FOLDERS_MAX = 10_000;

/** This machine, as remote stations know it: an id, and the folders that were sent from here. */
export interface CallerMachine {
  id(): Promise<string>;
  readonly host: string;
  /**
   * Returns whether this machine sent a folder to exactly this station. We write to a folder only if it did: we trust
   * neither the station's own claim nor the fact that another station received the folder.
   */
  hasSent(folder: string): Promise<boolean>;
  noteSent(folder: string): Promise<void>;
}

const SentFolder = z.object({ folder: z.string(), station: z.string() });
type SentFolder = z.infer<typeof SentFolder>;

/**
 * Stored in the state folder: each state folder counts as a separate machine. `station` is the address that the user
 * chose for the station, which the station cannot change.
 */
export function createCallerMachine({ stateDir, station }: { stateDir: string; station: string }): CallerMachine {
  const dir = join(stateDir, FOLDER);
  const idFile = join(dir, "machine-id");
  const sentFile = join(dir, "sent-folders.json");
  // Earlier versions did not record the station, so every station may still use the folders listed here.
  const formerFile = join(dir, "folders.json");
  const sentFolders = async (): Promise<SentFolder[]> => await readList(sentFile, SentFolder);
  const isKnown = ({ folder, station: at }: SentFolder, wanted: string) => folder === wanted && at === station;
  const readId = async () => MachineId.safeParse(await ifErrno(readFile(idFile, "utf8"), ABSENT, "")).data ?? null;
  return {
    host: hostname().slice(0, 255) || "unknown",
    async id() {
      const known = await readId();
      if (known !== null) return known;
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const newId = randomLetters(ID_LETTERS);
      // If two processes race, the second one uses the id of the first.
      await write(idFile, newId, { replace: false });
      const storedId = await readId();
      if (storedId === null) throw new CaissonError("internal", `${idFile} is damaged`, { hint: `Remove ${idFile}.` });
      return storedId;
    },
    async hasSent(folder) {
      const all = (await sentFolders()).filter((each) => each.folder === folder);
      if (all.length > 0) return all.some((each) => isKnown(each, folder));
      return (await readList(formerFile, z.string())).includes(folder);
    },
    async noteSent(folder) {
      const known = await sentFolders();
      if (known.some((each) => isKnown(each, folder))) return;
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await write(sentFile, JSON.stringify([...known, { folder, station }].slice(-FOLDERS_MAX)), { replace: true });
    },
  };
}

async function readList<Item>(file: string, item: z.ZodType<Item>): Promise<Item[]> {
  const text = await ifErrno(readFile(file, "utf8"), ABSENT, "[]");
  return z.array(item).max(FOLDERS_MAX).safeParse(jsonOrNull(text)).data ?? [];
}

async function write(file: string, text: string, { replace }: { replace: boolean }): Promise<void> {
  const part = replace ? `${file}.${randomLetters(8)}.part` : file;
  try {
    await using handle = await open(part, "wx", 0o600);
    await handle.writeFile(text);
    await handle.sync();
    if (replace) await rename(part, file);
  } catch (error) {
    if (!replace && isErrno(error, "EEXIST")) return;
    await rm(part, { force: true });
    throw error;
  }
}

/** Returns the folder with links resolved, or the path unchanged if the folder no longer exists. */
export const realFolder = async (folder: string) => realPathOrNull(folder) ?? folder;
