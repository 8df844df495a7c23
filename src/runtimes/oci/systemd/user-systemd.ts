import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DbusEndpoint } from "./dbus-connection.ts";

/** What the user's session says of itself, as the composition root read it. */
export interface UserSession {
  /** `$XDG_RUNTIME_DIR` */
  runtimeDir?: string;
  /** `$DBUS_SESSION_BUS_ADDRESS` */
  busAddress?: string;
}

/** The systemd that runs for one user, and starts units in control groups which that user owns. */
export interface UserSystemd {
  /** Where it can be asked, in order of preference. */
  endpoints: DbusEndpoint[];
  /** Its own control group; everything below belongs to the user. */
  dir: string;
  /** Whether it, and what runs below it, outlives the user's last session. */
  lingering: boolean;
}

export const LINGER_FIX = "loginctl enable-linger";

export interface UserSystemdOptions {
  /** Of the unified hierarchy. */
  mountPoint: string;
  uid: number;
  userName: string;
  session: UserSession;
  look?: { isSocket(path: string): boolean; exists(path: string): boolean };
}

/** Null where there is none. Starts and asks nothing. */
export function findUserSystemd(options: UserSystemdOptions): UserSystemd | null {
  const { mountPoint, uid, session, look = machine } = options;
  const dir = join(mountPoint, "user.slice", `user-${uid}.slice`, `user@${uid}.service`);
  if (!look.exists(dir)) return null;
  const runtimeDir = session.runtimeDir ?? `/run/user/${uid}`;
  const endpoints = [
    ...parseBusAddress(session.busAddress ?? "").map((socketPath) => ({ socketPath, direct: false })),
    { socketPath: join(runtimeDir, "bus"), direct: false },
    // Where no message bus is installed, systemd itself still listens, as it does for `systemctl --user`.
    { socketPath: join(runtimeDir, "systemd", "private"), direct: true },
  ].filter(
    ({ socketPath }, index, all) =>
      all.findIndex((other) => other.socketPath === socketPath) === index && (socketPath.startsWith("\0") || look.isSocket(socketPath)),
  );
  if (endpoints.length === 0) return null;
  return { endpoints, dir, lingering: look.exists(join("/var/lib/systemd/linger", options.userName)) };
}

/**
 * The sockets in a D-Bus address, such as `unix:path=/run/user/1000/bus,guid=…;unix:abstract=/tmp/x`. Other transports
 * are left out.
 */
export function parseBusAddress(address: string): string[] {
  return address.split(";").flatMap((each) => {
    const [, settings] = /^unix:(.*)$/.exec(each) ?? [];
    for (const setting of settings?.split(",") ?? []) {
      const [, key, value] = /^(path|abstract)=(.+)$/.exec(setting) ?? [];
      if (key !== undefined && value !== undefined) return [`${key === "abstract" ? "\0" : ""}${unescaped(value)}`];
    }
    return [];
  });
}

function unescaped(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

const machine = {
  exists: existsSync,
  isSocket(path: string): boolean {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  },
};
