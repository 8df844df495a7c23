import { randomBytes } from "node:crypto";
import { link, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { EnvName } from "../../contract/ids.ts";
import { GatewayConfig, NetworkPolicy, SecretConfig } from "../../contract/network/network.ts";
import { ABSENT, ifErrno, ignore, isErrno } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { watchFolder } from "./watch-folder.ts";

/**
 * The current state of a sandbox's network. It is stored in the sandbox's folder, so that every process sees the same.
 */
export const NetworkState = z.object({
  policy: NetworkPolicy,
  secrets: z.record(EnvName, SecretConfig),
  gateway: GatewayConfig.nullable(),
  /** Whether programs inside may reach the station, with the sandbox's own token. */
  stationAccess: z.boolean().default(false),
  revoked: z.array(EnvName),
  /** The author of the last change, for listeners. */
  changedBy: z.string().max(200).default(""),
  /** The placeholder of each secret inside. */
  placeholders: z.record(EnvName, z.string()),
  /** The authority that only this sandbox trusts. */
  authority: z.object({ keyPem: z.string(), certificatePem: z.string() }).nullable(),
});
export type NetworkState = z.infer<typeof NetworkState>;

/** Checks whether a sandbox was created with the transparent proxy, which cannot be changed later. */
export function isMadeTransparent({ info }: Pick<OwnedSandbox, "info">): boolean {
  const { network } = info;
  return network.mode !== "none" && network.transparent;
}

export interface NetworkStateFile {
  /** Returns null for a sandbox that never had a network. */
  read(): Promise<NetworkState | null>;
  /**
   * Writes what `change` returns for the current state. Calls it again if another process was faster. Throws what
   * `change` throws.
   */
  update(change: (state: NetworkState | null) => NetworkState): Promise<NetworkState>;
  /** Calls `onChange` with the current state and with each new one, until closed. */
  watch(onChange: (state: NetworkState) => void): { close(): void };
}

const ATTEMPTS_MAX = 50;
/**
 * A number must stay taken as long as a process may still try to take it. A process that read the state this many
 * changes ago has long since written or given up.
 */
const REVISIONS_KEPT = 64;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
const fileName = /^network-(\d{8})\.json$/;

/**
 * Each state is a separate file with the next number in its name. A link to an existing name fails, so two processes
 * that change the state at the same time cannot undo each other's change, and a killed process leaves the old state or
 * the new one.
 */
export function networkStateFile(folder: string): NetworkStateFile {
  const newest = async (): Promise<number> => {
    const names = await readdir(folder).catch((cause: unknown) => {
      if (!isErrno(cause, ...ABSENT)) throw cause;
      throw new CaissonError("lost", "the sandbox's folder no longer exists", { cause });
    });
    return Math.max(0, ...names.map((name) => Number(fileName.exec(name)?.[1] ?? 0)));
  };
  const pathOf = (revision: number) => join(folder, `network-${String(revision).padStart(8, "0")}.json`);
  const load = async (): Promise<{ revision: number; state: NetworkState | null }> => {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const revision = await newest();
      if (revision === 0) return { revision, state: null };
      const text = await ifErrno(readFile(pathOf(revision), "utf8"), ABSENT, null);
      // Replaced between the listing and the read.
      if (text === null) continue;
      if (text.length > FILE_BYTES_MAX) break;
      return { revision, state: parse(text) };
    }
    throw new CaissonError("internal", "the state of the sandbox's network cannot be read");
  };
  return {
    read: async () => (await load()).state,
    async update(change) {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        const { revision, state } = await load();
        const next = NetworkState.parse(change(state));
        const temporary = join(folder, `network-${randomBytes(6).toString("hex")}.tmp`);
        await writeFile(temporary, `${JSON.stringify(next)}\n`, { mode: 0o600, flag: "wx", flush: true });
        try {
          await link(temporary, pathOf(revision + 1));
          await rm(pathOf(revision + 1 - REVISIONS_KEPT), { force: true });
          return next;
        } catch (error) {
          if (!isErrno(error, "EEXIST")) throw error;
        } finally {
          await rm(temporary, { force: true });
        }
      }
      throw new CaissonError("conflict", "too many processes are changing the sandbox's network", { hint: "Try again." });
    },
    watch(onChange) {
      let seen = -1;
      let closed = false;
      let looking = false;
      let again = false;
      const look = async () => {
        if (looking) {
          again = true;
          return;
        }
        looking = true;
        try {
          do {
            again = false;
            const { revision, state } = await load();
            if (closed || state === null || revision === seen) continue;
            seen = revision;
            onChange(state);
          } while (again);
        } finally {
          looking = false;
        }
      };
      const tryToLook = () => void ignore(look(), "the folder was removed with the sandbox, or the next change is read");
      const watching = watchFolder(folder, (name) => {
        if (name === null || fileName.test(name)) tryToLook();
      });
      tryToLook();
      return {
        close() {
          closed = true;
          watching.close();
        },
      };
    },
  };
}

function parse(text: string): NetworkState {
  try {
    return NetworkState.parse(JSON.parse(text));
  } catch (cause) {
    throw new CaissonError("internal", "the state of the sandbox's network is damaged", { cause });
  }
}
