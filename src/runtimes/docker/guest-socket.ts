import { chmod, chown, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import { lstatOrNull } from "../../lib/lstat-or-null.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { makeGuestToken, readGuestToken, tokenName } from "../../sandbox/guest-token.ts";
import { socketName } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

const CONNECT_MS = 5_000;
const POLL_MS = 5;

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
 * Makes the shared folder with the token the guest will ask for; the host's copy stays outside of it. Returns the group
 * by which an engine's root and an ordinary user share it: neither may act for the other, so the guest joins the user's
 * group. Work never has it.
 */
export async function makeSocketFolder(options: { sandboxFolder: string; guest: GuestIdentity }): Promise<{ group: number | null }> {
  const { sandboxFolder, guest } = options;
  const folder = socketFolderIn(sandboxFolder);
  const tokenInside = join(folder, tokenName);
  const token = makeGuestToken(sandboxFolder);
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

/**
 * Waits for the guest's socket and moves it out of the shared folder. A socket is found by its file, wherever that
 * lies, so the host still connects to it, while no path inside leads to it any more: not even root there can reach or
 * replace it. `alive` throws when the sandbox has died meanwhile. To be called before any command runs.
 */
export async function takeSocket(options: {
  sandboxFolder: string;
  timeoutMs: number;
  alive: () => Promise<void>;
  signal?: AbortSignal | undefined;
}): Promise<void> {
  const { sandboxFolder, timeoutMs, alive, signal } = options;
  const path = join(socketFolderIn(sandboxFolder), socketName);
  const began = Date.now();
  for (let turn = 1; Date.now() - began < timeoutMs; turn += 1) {
    signal?.throwIfAborted();
    if (lstatOrNull(path)?.isSocket()) return rename(path, join(sandboxFolder, socketName));
    if (turn % 20 === 0) await alive();
    await sleep(POLL_MS);
  }
  throw new CaissonError("timeout", `the guest did not listen within ${timeoutMs} ms`, {
    hint: "The engine may not see this machine's files: it must run here, not in another sandbox or virtual machine.",
  });
}

/** Once the guest has greeted us by it, the token is needed no more inside. */
export async function removeTokenInside(sandboxFolder: string): Promise<void> {
  await rm(join(socketFolderIn(sandboxFolder), tokenName), { force: true });
}

/** A fresh guest may have bound its socket and not listen yet. Throws `lost` when nobody listens any more. */
export async function connectToGuest(options: { sandboxFolder: string; fresh: boolean }): Promise<GuestConnection> {
  const { sandboxFolder, fresh } = options;
  const token = readGuestToken(sandboxFolder);
  if (token === undefined) throw new CaissonError("lost", "the sandbox's token is gone");
  return connectGuest({ socketPath: join(sandboxFolder, socketName), token, timeoutMs: CONNECT_MS, waitForSocket: fresh });
}
