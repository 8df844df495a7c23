import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, chown, type FileHandle, lstat, mkdir, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "../../../contract/error.ts";
import { connectGuest, type GuestConnection } from "../../guest/connection.ts";
import { socketName, tokenName } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** Linux' flag for a descriptor that only names a file; Node has no constant for it. */
const O_PATH = 0o10000000;
const CONNECT_MS = 5_000;
const POLL_MS = 5;
const TOKEN_BYTES = 32;

/** The folder that sandbox and host share. Only the guest's uid may enter it inside. */
export function socketFolderIn(sandboxFolder: string): string {
  return join(sandboxFolder, "socket");
}

/** Who the guest, which is root inside, is on the host. */
export interface GuestIdentity {
  uid: number;
  gid: number;
}

export async function guestIdentity(options: { facts: EngineFacts; socketPath: string }): Promise<GuestIdentity> {
  const { facts, socketPath } = options;
  if (facts.remappedRoot !== null) return facts.remappedRoot;
  if (!facts.rootless) return { uid: 0, gid: 0 };
  // A rootless engine's root is the user it runs as, who also owns its socket.
  const { uid, gid } = await stat(socketPath);
  return { uid, gid };
}

/**
 * Makes the shared folder with the token the guest will ask for; the host's copy stays outside of it. Returns the group by which an
 * engine's root and an ordinary user share it: neither may act for the other, so the guest joins the user's group. Work never has it.
 */
export async function makeSocketFolder(options: { sandboxFolder: string; guest: GuestIdentity }): Promise<{ group: number | null }> {
  const { sandboxFolder, guest } = options;
  const folder = socketFolderIn(sandboxFolder);
  const tokenInside = join(folder, tokenName);
  const token = randomBytes(TOKEN_BYTES).toString("hex");
  await writeFile(join(sandboxFolder, tokenName), token, { mode: 0o600, flag: "wx" });
  await mkdir(folder, { mode: 0o700 });
  await writeFile(tokenInside, token, { mode: 0o600, flag: "wx" });
  const self = process.geteuid?.() ?? 0;
  if (guest.uid === self) return { group: null };
  if (self === 0) {
    await chown(tokenInside, guest.uid, guest.gid);
    await chown(folder, guest.uid, guest.gid);
    return { group: null };
  }
  if (guest.uid !== 0) {
    throw new CaissonError("unsupported", "the engine maps user ids to ones that you may not share a folder with", {
      hint: "Run as root, use an engine of your own (rootless), or use the oci runtime.",
    });
  }
  await chmod(tokenInside, 0o640);
  // With the group's bit, the guest's socket belongs to the group as well.
  await chmod(folder, 0o2770);
  return { group: process.getegid?.() ?? 0 };
}

/** Waits until the guest listens, and says which file its socket is. `alive` throws when the sandbox has died meanwhile. */
export async function awaitSocket(options: {
  sandboxFolder: string;
  timeoutMs: number;
  alive: () => Promise<void>;
  signal?: AbortSignal | undefined;
}): Promise<string> {
  const path = join(socketFolderIn(options.sandboxFolder), socketName);
  const began = Date.now();
  for (let turn = 1; Date.now() - began < options.timeoutMs; turn += 1) {
    options.signal?.throwIfAborted();
    const info = await lstat(path).catch(() => null);
    if (info?.isSocket()) return identityOf(info);
    if (turn % 20 === 0) await options.alive();
    await sleep(POLL_MS);
  }
  throw new CaissonError("timeout", `the guest did not listen within ${options.timeoutMs} ms`, {
    hint: "The engine may not see this machine's files: it must run here, not in another sandbox or virtual machine.",
  });
}

/** Once the guest has greeted us by it, the token is needed no more. */
export async function removeTokenInside(sandboxFolder: string): Promise<void> {
  await rm(join(socketFolderIn(sandboxFolder), tokenName), { force: true });
}

/**
 * Connects to the very socket that was seen at creation. Root inside could put another file in its place, or a link to some socket of
 * the host's, so the file is opened without following links, compared, and connected to by its descriptor.
 * A fresh guest may have bound its socket and not listen yet. Throws `lost` when it is gone or another.
 */
export async function connectPinned(options: { sandboxFolder: string; socket: string; fresh?: boolean }): Promise<GuestConnection> {
  const path = join(socketFolderIn(options.sandboxFolder), socketName);
  let handle: FileHandle;
  try {
    handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    throw new CaissonError("lost", "the guest's socket is gone", { cause: error });
  }
  try {
    const info = await handle.stat();
    if (!info.isSocket() || identityOf(info) !== options.socket) throw new CaissonError("lost", "the guest's socket was replaced");
    const token = await readFile(join(options.sandboxFolder, tokenName));
    return await connectGuest({
      socketPath: `/proc/self/fd/${handle.fd}`,
      token,
      timeoutMs: CONNECT_MS,
      waitForSocket: options.fresh === true,
    });
  } finally {
    await handle.close();
  }
}

function identityOf(info: { dev: number; ino: number }): string {
  return `${info.dev}:${info.ino}`;
}
