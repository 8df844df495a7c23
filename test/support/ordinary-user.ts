import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { userInfo } from "node:os";

export interface OrdinaryUser {
  name: string;
  uid: number;
  gid: number;
  home: string;
  /** Removes the user if it was created here. */
  remove(): void;
}

const NAME = "caissontest";

/**
 * Returns a user without root rights and with sub-ids, as `useradd` creates them: the user who runs the tests, or one
 * created for them.
 */
export function ordinaryUser(): OrdinaryUser {
  const { uid, gid, username, homedir } = userInfo();
  if (uid !== 0) return { name: username, uid, gid, home: homedir, remove() {} };
  const known = lookUp();
  if (known !== null) return { ...known, remove() {} };
  execFileSync("useradd", ["--create-home", "--shell", "/bin/sh", NAME]);
  const user = lookUp();
  if (user === null) throw new Error(`useradd did not make the user ${NAME}`);
  return {
    ...user,
    remove() {
      execFileSync("userdel", [NAME]);
      rmSync(user.home, { recursive: true, force: true });
    },
  };
}

function lookUp(): Omit<OrdinaryUser, "remove"> | null {
  try {
    const [name = "", , uid, gid, , home = ""] = execFileSync("getent", ["passwd", NAME], { encoding: "utf8" }).trim().split(":");
    return { name, uid: Number(uid), gid: Number(gid), home };
  } catch {
    return null;
  }
}
