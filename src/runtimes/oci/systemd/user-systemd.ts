import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DbusEndpoint } from "./dbus-connection.ts";

/** The variables of the user's session, as read by the composition root. */
export interface UserSession {
  /** `$XDG_RUNTIME_DIR` */
  runtimeDir?: string;
  /** `$DBUS_SESSION_BUS_ADDRESS` */
  busAddress?: string;
}

/** A user's own systemd, which starts units in control groups that the user owns. */
export interface UserSystemd {
  /** Where it listens, in order of preference. */
  endpoints: DbusEndpoint[];
  /** Its own control group. Everything below belongs to the user. */
  dir: string;
  /** Whether it outlives the user's last session, with everything that runs below it. */
  lingering: boolean;
}

export const LINGER_FIX = "loginctl enable-linger";

export interface UserSystemdOptions {
  /** The mount point of the unified hierarchy. */
  mountPoint: string;
  uid: number;
  userName: string;
  session: UserSession;
  look?: { isSocket(path: string): boolean; exists(path: string): boolean };
}

/** Finds the user's systemd without starting or asking anything. Returns null if it is not running. */
export function findUserSystemd(options: UserSystemdOptions): UserSystemd | null {
  const { mountPoint, uid, session, look = machine } = options;
  const dir = join(mountPoint, "user.slice", `user-${uid}.slice`, `user@${uid}.service`);
  if (!look.exists(dir)) return null;
  const runtimeDir = session.runtimeDir ?? `/run/user/${uid}`;
  const endpoints = [
    ...parseBusAddress(session.busAddress ?? "").map((socketPath) => ({ socketPath, direct: false })),
    { socketPath: join(runtimeDir, "bus"), direct: false },
    // Without a message bus, systemd itself still listens, as it does for `systemctl --user`.
    { socketPath: join(runtimeDir, "systemd", "private"), direct: true },
  ].filter(
    ({ socketPath }, index, all) =>
      all.findIndex((other) => other.socketPath === socketPath) === index && (socketPath.startsWith("\0") || look.isSocket(socketPath)),
  );
  if (endpoints.length === 0) return null;
  return { endpoints, dir, lingering: look.exists(join("/var/lib/systemd/linger", options.userName)) };
}

/**
 * Returns the sockets in a D-Bus address, such as `unix:path=/run/user/1000/bus,guid=…;unix:abstract=/tmp/x`. Leaves
 * out other transports.
 */
export function parseBusAddress(address: string): string[] {
  return address.split(";").flatMap((each) => {
    const [, settings] = /^unix:(.*)$/.exec(each) ?? [];
    for (const setting of settings?.split(",") ?? []) {
      const [, key, value] = /^(path|abstract)=(.+)$/.exec(setting) ?? [];
      if (key !== undefined && value !== undefined) return [`${key === "abstract" ? "\0" : ""}${decodeAddressText(value)}`];
    }
    return [];
  });
}

function decodeAddressText(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

const machine = {
  exists: existsSync,
  isSocket(path: string): boolean {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  },
};
