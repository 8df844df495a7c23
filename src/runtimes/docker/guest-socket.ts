import { chmod, chown, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { lstatOrNull } from "../../lib/paths.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { makeGuestToken, readGuestToken, tokenName } from "../../sandbox/guest-token.ts";
import { socketName } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

const CONNECT_MS = 5_000;
const POLL_MS = 5;

/** The folder shared by sandbox and host. Inside, only the guest's uid may enter it. */
export function socketFolderIn(sandboxFolder: string): string {
  return join(sandboxFolder, "socket");
}

/** The host ids of the guest, which is root inside. */
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
 * Creates the shared folder with the token that the guest will expect; the host's copy stays outside it. If the engine
 * runs as root and we do not, neither we nor the guest can act as the other. The guest then joins our group, which this
 * function returns. Sandboxed programs are never in that group.
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
    throw new CaissonError("unsupported", "you cannot share a folder with the user ids that the engine maps to", {
      hint: "Run as root, use your own rootless engine, or use the oci runtime.",
    });
  }
  await chmod(tokenInside, 0o640);
  // With the set-group-id bit, the guest's socket belongs to the group as well.
  await chmod(folder, 0o2770);
  return { group: process.getegid?.() ?? 0 };
}

/**
 * Waits for the guest's socket and moves it out of the shared folder. A socket keeps working when its file is moved:
 * the host can still connect, but no path inside leads to it, so even root there cannot reach or replace it. `alive`
 * throws if the sandbox has died. Must be called before any command runs.
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
    hint: "Run the engine on this machine, not in another sandbox or virtual machine: it must see this machine's files.",
  });
}

/** Removes the token from the shared folder. The guest no longer needs it once we are connected. */
export async function removeTokenInside(sandboxFolder: string): Promise<void> {
  await rm(join(socketFolderIn(sandboxFolder), tokenName), { force: true });
}

/**
 * Connects to the guest. A fresh guest may have bound its socket but not listen yet. Throws `lost` if there is no
 * listener.
 */
export async function connectToGuest(options: { sandboxFolder: string; fresh: boolean }): Promise<GuestConnection> {
  const { sandboxFolder, fresh } = options;
  const token = readGuestToken(sandboxFolder);
  if (token === undefined) throw new CaissonError("lost", "the sandbox's token is missing");
  return connectGuest({ socketPath: join(sandboxFolder, socketName), token, timeoutMs: CONNECT_MS, waitForSocket: fresh });
}
