import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { ShipTarget } from "../../contract/ship/ship.ts";
import type { OutboundReply, OutboundRequest } from "../../network/outbound/request-outbound.ts";
import { createBareRemote } from "../../workspace/git/bare-remote.ts";
import type { GitOptions } from "../../workspace/git/host-git.ts";
import type { LockRecords } from "../../workspace/git/ref-locks.ts";
import { fileOfSecret, readToken, tokenRefusal } from "../secrets/kept-token.ts";
import type { Connection } from "./connection.ts";
import type { Forge } from "./forges/forge.ts";
import { createGitea } from "./forges/gitea.ts";
import { createGithub } from "./forges/github.ts";
import { createPlainForge } from "./forges/plain.ts";
import { createHttpRemote } from "./http-remote.ts";
import type { ShipParts } from "./ship-steps.ts";

export interface ReachOptions {
  secretsOf(owner: string): Promise<Readonly<Record<string, SecretConfig>>>;
  send(request: OutboundRequest): Promise<OutboundReply>;
  git: Pick<GitOptions, "path">;
  /** Lock records for bare repositories on this machine. */
  locks: LockRecords;
  now(): number;
}

/**
 * Creates the function that connects a ship to its remote and forge. It reads the token on each use and stores it
 * nowhere.
 */
export function createReach(options: ReachOptions): ShipParts["reach"] {
  return ({ id, owner, createdAt, created, facts }, own, signal) => {
    const { target, author } = created;
    const hash = facts.committed?.base.length === 64 ? "sha256" : "sha1";
    const token: Connection["token"] = (request) => tokenFor(target, request, { ...options, owner });
    const connection: Connection = { send: options.send, token, allowPrivate: target.allowPrivate, signal, now: options.now };
    const remote = target.remote.startsWith("/")
      ? createBareRemote({ path: target.remote, hash, git: options.git, locks: options.locks })
      : createHttpRemote(target.remote, connection);
    const forges: Readonly<Record<ShipTarget["forge"], () => Forge>> = {
      github: () => createGithub(target.remote, connection),
      gitea: () => createGitea(target.remote, connection),
      git: () => createPlainForge({ ship: id, remote, own, author, address: target.remote, at: createdAt }),
    };
    return { remote, forge: forges[target.forge]() };
  };
}

/**
 * Returns the token for one request. Throws `denied` if this request must not carry it, and `not_found` if no secret
 * has that name.
 */
async function tokenFor(
  { token: name, allowPrivate }: ShipTarget,
  { method, url }: { method: string; url: string },
  { secretsOf, owner }: Pick<ReachOptions, "secretsOf"> & { owner: string },
): Promise<string | null> {
  if (name === null) return null;
  const config = (await secretsOf(owner))[name];
  const to = new URL(url);
  const hint = `Store one: caisson secret set '${name}@${to.hostname}${to.port === "" ? "" : `;ports=${to.port}`}'`;
  if (config === undefined) throw new CaissonError("not_found", `the station has no secret ${name}`, { hint });
  const file = fileOfSecret(config);
  if (file === null) throw new CaissonError("unsupported", `the secret ${name} is not stored in the station itself`, { hint });
  // Without TLS, we send the token only for a ship that allows private addresses; the sender then accepts no other
  // address.
  const why = tokenRefusal(config, { method, url: to }, { allowClear: allowPrivate });
  if (why !== null) throw new CaissonError("denied", `the secret ${name} must not be sent to ${to.host}: ${why}`, { hint });
  return await readToken(file);
}
