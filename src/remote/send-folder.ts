import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { relative } from "node:path";
import { CaissonError } from "../contract/error.ts";
import type { FolderOrigin } from "../contract/upload.ts";
import type { UploadView } from "../contract/upload-verbs.ts";
import type { HidingRules } from "../contract/workspace-guard.ts";
import { defined } from "../lib/defined.ts";
import { showBytes } from "../lib/quantity.ts";
import { viewState } from "../sandbox/state-places.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import type { UploadVerbs } from "../station/uploads/verbs.ts";
import { settleFolder } from "../workspace/apply-recovery.ts";
import { findCredentialFiles } from "../workspace/credential-files.ts";
import { checkFolder } from "../workspace/sessions.ts";
import { refuseWrongPlace } from "../workspace/wrong-place.ts";
import { type CallerMachine, realFolder } from "./caller-machine.ts";

/** Everything is read anyway, so everything is looked at; what cannot be is not sent. */
const searchBounds = { depthMax: 200, entriesMax: 1_000_000, timeMaxMs: 60_000 };
const ARCHIVE_BYTES_MAX = 4 * 1024 ** 3;
/** From here on somebody is told what they wait for. */
const TOLD_BYTES = 16 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
/** One that goes any moment is sent again. */
const LIFE_LEFT_MS = 10 * 60_000;
const NAMES_TOLD = 5;

export interface SendFolder {
  uploads: UploadVerbs;
  machine: CallerMachine;
  /** Where keys and Caisson's own state are on this machine. */
  places: { home: string; stateDir: string; configDir: string };
  /** Told what is worth a word to the user. */
  notice: (text: string) => void;
}

export interface SentFolder {
  upload: string;
  origin: FolderOrigin;
}

/**
 * Sends a folder of this machine to a station, unless it has just that one already. What looks like a credential, and
 * what is hidden by the rules, stays here. Throws `invalid`, `not_found`, `too_large`, `denied`, and what the station
 * throws.
 */
export async function sendFolder(
  named: string,
  options: SendFolder & { hiding?: HidingRules | undefined; signal?: AbortSignal; isNamed: boolean; option: string },
): Promise<SentFolder> {
  const { uploads, machine, notice, signal } = options;
  await checkFolder(named);
  const folder = await realFolder(named);
  if (!options.isNamed) refuseWrongPlace(folder, { places: options.places, option: options.option });
  await settleFolder(folder, options.places);
  const hidden = await hiddenHere(folder, options);
  tellHidden(hidden.credentials, folder, notice);
  const pack = (onSkipped?: (name: string, reason: string) => void) =>
    bounded(packFolder(folder, { excludePaths: hidden.all, ...defined({ onSkipped }) }), folder);
  const { digest, bytes } = await measured(
    pack((name, reason) => notice(`${name} is not sent: ${reason}`)),
    signal,
  );
  await machine.noteSent(folder);
  const origin: FolderOrigin = { machine: await machine.id(), host: machine.host, folder, ...defined({ hiding: options.hiding }) };
  const known = (await uploads.list({ digest })).find(staysForNow);
  if (known !== undefined) return { upload: known.id, origin };
  if (bytes >= TOLD_BYTES) notice(`sending ${folder}, ${showBytes(bytes)}`);
  return { upload: (await sent(pack(), { uploads, notice, ...defined({ signal }) })).id, origin };
}

/** The files of a folder that stay on this machine, relative to it. */
export async function hiddenHere(
  folder: string,
  { places, hiding }: { places: SendFolder["places"]; hiding?: HidingRules | undefined },
): Promise<{ all: string[]; credentials: string[] }> {
  const { paths: credentials, complete } = await findCredentialFiles(folder, hiding ?? { hide: [], show: [] }, searchBounds);
  if (!complete) {
    throw new CaissonError("too_large", `${folder} is too large to be looked through for credentials`, {
      hint: "Send a folder in it, or name a repository with --repo URL.",
    });
  }
  const state = viewState(places.stateDir)
    .placesIn(folder, { mountsBelow: true })
    .map(({ path }) => path);
  const own = [places.configDir].flatMap((dir) => within(dir, folder));
  return { all: [...credentials, ...state, ...own], credentials };
}

/** Where a folder of ours lies in it, if it does. */
function within(dir: string, folder: string): string[] {
  try {
    const path = relative(folder, realpathSync(dir));
    return path === "" || path.startsWith("..") ? [] : [path];
  } catch {
    return [];
  }
}

function tellHidden(paths: readonly string[], folder: string, notice: (text: string) => void): void {
  if (paths.length === 0) return;
  const names = `${paths.slice(0, NAMES_TOLD).join(", ")}${paths.length > NAMES_TOLD ? ", …" : ""}`;
  const what = paths.length === 1 ? "1 file that looks like a credential is" : `${paths.length} files that look like credentials are`;
  notice(`${what} not sent with ${folder}: ${names} (--show NAME sends it)`);
}

const staysForNow = ({ expiresAt }: UploadView) => expiresAt === null || Date.parse(expiresAt) - Date.now() > LIFE_LEFT_MS;

async function* bounded(archive: AsyncIterable<Buffer>, folder: string): AsyncGenerator<Buffer> {
  let left = ARCHIVE_BYTES_MAX;
  for await (const piece of archive) {
    left -= piece.length;
    if (left < 0) {
      throw new CaissonError("too_large", `${folder} has more than ${showBytes(ARCHIVE_BYTES_MAX)}`, {
        hint: "Leave what is not needed here with --hide PATTERN, send a folder in it, or name a repository with --repo URL.",
      });
    }
    yield piece;
  }
}

async function measured(archive: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<{ digest: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of archive) {
    if (signal?.aborted) throw new CaissonError("cancelled", "interrupted before the folder was sent");
    hash.update(piece);
    bytes += piece.length;
  }
  return { digest: hash.digest("hex"), bytes };
}

/** What came there is what left here; a station that says otherwise keeps nothing. */
async function sent(
  archive: AsyncIterable<Buffer>,
  { uploads, notice, signal }: { uploads: UploadVerbs; notice: (text: string) => void; signal?: AbortSignal },
): Promise<UploadView> {
  const hash = createHash("sha256");
  const view = await uploads.put(gathered(archive, hash), defined({ signal }));
  if (view.digest !== hash.digest("hex")) {
    await uploads.remove(view.id).catch(() => undefined);
    throw new CaissonError("protocol", "what came to the station is not what was sent", { hint: "Try again." });
  }
  for (const { name, reason } of view.skipped.slice(0, NAMES_TOLD)) notice(`${name} is not sent: ${reason}`);
  if (view.skipped.length > NAMES_TOLD) notice(`and ${view.skipped.length - NAMES_TOLD} more`);
  return view;
}

/** In pieces that are worth sending: an archive comes in blocks of 512 bytes. */
async function* gathered(archive: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of archive) {
    hash.update(piece);
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(pieces);
    pieces = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(pieces);
}
