import { mkdir, open, readFile, realpath, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { MachineId } from "../contract/upload.ts";
import { isErrno } from "../lib/is-errno.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { randomLetters } from "../lib/new-id.ts";

const FOLDER = "elsewhere";
const ID_LETTERS = 26;
/** Of folders that were sent; the oldest are forgotten. */
const FOLDERS_MAX = 10_000;

/** This machine, as stations elsewhere know it: by an id, and by the folders that were sent from here. */
export interface CallerMachine {
  id(): Promise<string>;
  readonly host: string;
  /**
   * Whether a folder was sent from here to this very station. A station's word for it is not enough to write there, nor
   * is that another one has it.
   */
  hasSent(folder: string): Promise<boolean>;
  noteSent(folder: string): Promise<void>;
}

const SentFolder = z.object({ folder: z.string(), station: z.string() });
type SentFolder = z.infer<typeof SentFolder>;

/**
 * Kept in the state folder: each folder counts as a separate machine. `station` is the address that was
 * chosen for the station, which it cannot change itself.
 */
export function createCallerMachine({ stateDir, station }: { stateDir: string; station: string }): CallerMachine {
  const dir = join(stateDir, FOLDER);
  const idFile = join(dir, "machine-id");
  const sentFile = join(dir, "sent-folders.json");
  // Of versions that did not note the station: such a folder is known to every station, as it was then.
  const formerFile = join(dir, "folders.json");
  const sent = async (): Promise<SentFolder[]> => await readList(sentFile, SentFolder);
  const isKnown = ({ folder, station: at }: SentFolder, wanted: string) => folder === wanted && at === station;
  const readId = async () => MachineId.safeParse(await readFile(idFile, "utf8").catch(() => "")).data ?? null;
  return {
    host: hostname().slice(0, 255) || "unknown",
    async id() {
      const known = await readId();
      if (known !== null) return known;
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const made = randomLetters(ID_LETTERS);
      // Whoever comes second takes the first one's.
      await write(idFile, made, { replace: false });
      const kept = await readId();
      if (kept === null) throw new CaissonError("internal", `${idFile} is damaged`, { hint: `Remove ${idFile}.` });
      return kept;
    },
    async hasSent(folder) {
      const all = (await sent()).filter((each) => each.folder === folder);
      if (all.length > 0) return all.some((each) => isKnown(each, folder));
      return (await readList(formerFile, z.string())).includes(folder);
    },
    async noteSent(folder) {
      const known = await sent();
      if (known.some((each) => isKnown(each, folder))) return;
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await write(sentFile, JSON.stringify([...known, { folder, station }].slice(-FOLDERS_MAX)), { replace: true });
    },
  };
}

async function readList<Item>(file: string, item: z.ZodType<Item>): Promise<Item[]> {
  const text = await readFile(file, "utf8").catch(() => "[]");
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

/** Without links; one that is gone is known by its name. */
export const realFolder = (folder: string) => realpath(folder).catch(() => folder);
