import { createHash } from "node:crypto";
import { relative } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import type { FolderOrigin } from "../contract/upload/upload.ts";
import type { UploadView } from "../contract/upload/upload-verbs.ts";
import type { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { defined } from "../lib/defined.ts";
import { ignore } from "../lib/failures.ts";
import { realPathOrNull } from "../lib/paths.ts";
import { showBytes } from "../lib/quantity.ts";
import { viewState } from "../sandbox/state-places.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import type { UploadVerbs } from "../verbs/uploads.ts";
import { settleFolder } from "../workspace/apply-recovery.ts";
import { findCredentialFiles } from "../workspace/credential-files.ts";
import { checkFolder } from "../workspace/sessions.ts";
import { refuseWrongPlace } from "../workspace/wrong-place.ts";
import { type CallerMachine, realFolder } from "./caller-machine.ts";

/** Sending reads every file anyway, so the search covers everything. A folder beyond these bounds is not sent. */
const searchBounds = { depthMax: 200, entriesMax: 1_000_000, timeMaxMs: 60_000 };
const ARCHIVE_BYTES_MAX = 4 * 1024 ** 3;
/** From this size on we tell the user what the wait is for. */
const TOLD_BYTES = 16 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
/** We send a folder again if its upload expires sooner than this. */
const LIFE_LEFT_MS = 10 * 60_000;
const NAMES_TOLD = 5;

export interface SendFolder {
  uploads: UploadVerbs;
  machine: CallerMachine;
  /** The folders on this machine with keys and Caisson's own state. */
  places: { home: string; stateDir: string; configDir: string };
  /** Called with messages for the user. */
  notice: (text: string) => void;
}

export interface SentFolder {
  upload: string;
  origin: FolderOrigin;
}

/**
 * Sends a folder of this machine to a station, unless the station already has an identical copy. Files that look like
 * credentials and files that the rules hide stay here. Throws `invalid`, `not_found`, `too_large`, `denied`, and the
 * station's errors.
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
    limitBytes(packFolder(folder, { excludePaths: hidden.all, ...defined({ onSkipped }) }), folder);
  const { digest, bytes } = await measureArchive(
    pack((name, reason) => notice(`${name} is not sent: ${reason}`)),
    signal,
  );
  await machine.noteSent(folder);
  const origin: FolderOrigin = { machine: await machine.id(), host: machine.host, folder, ...defined({ hiding: options.hiding }) };
  const known = (await uploads.list({ digest })).find(staysForNow);
  if (known !== undefined) return { upload: known.id, origin };
  if (bytes >= TOLD_BYTES) notice(`sending ${folder}, ${showBytes(bytes)}`);
  return { upload: (await uploadArchive(pack(), { uploads, notice, ...defined({ signal }) })).id, origin };
}

/** Returns the files of a folder that stay on this machine, relative to the folder. */
export async function hiddenHere(
  folder: string,
  { places, hiding }: { places: SendFolder["places"]; hiding?: HidingRules | undefined },
): Promise<{ all: string[]; credentials: string[] }> {
  const { paths: credentials, complete } = await findCredentialFiles(folder, hiding ?? { hide: [], show: [] }, searchBounds);
  if (!complete) {
    throw new CaissonError("too_large", `${folder} is too large to search for credentials`, {
      hint: "Send a subfolder, or name a repository with --repo URL.",
    });
  }
  const state = viewState(places.stateDir)
    .placesIn(folder, { mountsBelow: true })
    .map(({ path }) => path);
  const own = [places.configDir].flatMap((dir) => within(dir, folder));
  return { all: [...credentials, ...state, ...own], credentials };
}

/** Returns the path of `dir` relative to the folder if it is below it. */
function within(dir: string, folder: string): string[] {
  const real = realPathOrNull(dir);
  const path = real === null ? "" : relative(folder, real);
  return path === "" || path.startsWith("..") ? [] : [path];
}

function tellHidden(paths: readonly string[], folder: string, notice: (text: string) => void): void {
  if (paths.length === 0) return;
  const names = `${paths.slice(0, NAMES_TOLD).join(", ")}${paths.length > NAMES_TOLD ? ", …" : ""}`;
  const what = paths.length === 1 ? "1 file that looks like a credential is" : `${paths.length} files that look like credentials are`;
  notice(`${what} not sent with ${folder}: ${names} (--show NAME sends it)`);
}

const staysForNow = ({ expiresAt }: UploadView) => expiresAt === null || Date.parse(expiresAt) - Date.now() > LIFE_LEFT_MS;

async function* limitBytes(archive: AsyncIterable<Buffer>, folder: string): AsyncGenerator<Buffer> {
  let left = ARCHIVE_BYTES_MAX;
  for await (const piece of archive) {
    left -= piece.length;
    if (left < 0) {
      throw new CaissonError("too_large", `${folder} is larger than ${showBytes(ARCHIVE_BYTES_MAX)}`, {
        hint: "Leave out files with --hide PATTERN, send a subfolder, or name a repository with --repo URL.",
      });
    }
    yield piece;
  }
}

async function measureArchive(archive: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<{ digest: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of archive) {
    if (signal?.aborted) throw new CaissonError("cancelled", "interrupted before the folder was sent");
    hash.update(piece);
    bytes += piece.length;
  }
  return { digest: hash.digest("hex"), bytes };
}

/** Checks that the station received what we sent. If the digests differ, we remove the upload. */
async function uploadArchive(
  archive: AsyncIterable<Buffer>,
  { uploads, notice, signal }: { uploads: UploadVerbs; notice: (text: string) => void; signal?: AbortSignal },
): Promise<UploadView> {
  const hash = createHash("sha256");
  const view = await uploads.put(inLargePieces(archive, hash), defined({ signal }));
  if (view.digest !== hash.digest("hex")) {
    await ignore(uploads.remove(view.id), "the station removes it later");
    throw new CaissonError("protocol", "the station received different data than was sent", { hint: "Try again." });
  }
  for (const { name, reason } of view.skipped.slice(0, NAMES_TOLD)) notice(`${name} is not sent: ${reason}`);
  if (view.skipped.length > NAMES_TOLD) notice(`and ${view.skipped.length - NAMES_TOLD} more`);
  return view;
}

/** Joins the archive's blocks of 512 bytes into larger pieces. */
async function* inLargePieces(archive: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
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
