import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { userInfo } from "node:os";

export interface OrdinaryUser {
  name: string;
  uid: number;
  gid: number;
  home: string;
  /** Removes the user where this made it. */
  remove(): void;
}

const NAME = "caissontest";

/** Somebody who is not root and has sub-ids, as `useradd` gives them: the one who runs the tests, or one made for them. */
export function ordinaryUser(): OrdinaryUser {
  const { uid, gid, username, homedir } = userInfo();
  if (uid !== 0) return { name: username, uid, gid, home: homedir, remove() {} };
  const known = lookUp();
  if (known !== null) return { ...known, remove() {} };
  execFileSync("useradd", ["--create-home", "--shell", "/bin/sh", NAME]);
  const made = lookUp();
  if (made === null) throw new Error(`useradd did not make the user ${NAME}`);
  return {
    ...made,
    remove() {
      execFileSync("userdel", [NAME]);
      rmSync(made.home, { recursive: true, force: true });
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
