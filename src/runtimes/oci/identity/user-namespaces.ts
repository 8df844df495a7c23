import { statSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import type { Finding } from "../../../sandbox/runtime.ts";

/** Reads a kernel setting or another small file by its path. Returns null if it does not exist. */
export type ReadSetting = (path: string) => string | null;

const CLONE = "kernel.unprivileged_userns_clone";
const APPARMOR = "kernel.apparmor_restrict_unprivileged_userns";
const NAMESPACES_MAX = "user.max_user_namespaces";
const keepIt = "as root; add it to a file in /etc/sysctl.d to keep it";

/** Whether this process's root differs from that of process 1. Only root may check. */
export function isChroot(): boolean {
  const own = statSync("/");
  const first = ifErrnoSync(() => statSync("/proc/1/root/."), UNREACHABLE, own);
  return own.dev !== first.dev || own.ino !== first.ino;
}

/**
 * Reports why this machine forbids user namespaces to everyone or to ordinary users, each with the setting that changes
 * it.
 */
export function userNamespaceFindings(read: ReadSetting, options: { rootless: boolean; chroot?: boolean }): Finding[] {
  const setting = (name: string) => read(`/proc/sys/${name.replaceAll(".", "/")}`)?.trim() ?? null;
  const problem = (text: string, fix: string): Finding => ({ level: "problem", text, fix });
  if (read("/proc/self/uid_map") === null)
    return [problem("this kernel has no user namespaces", "use a kernel built with CONFIG_USER_NS=y, as those of all distributions are")];
  if (options.chroot === true)
    return [
      problem(
        "this is a chroot, in which the kernel allows no user namespaces",
        "run Caisson in a container or a separate mount namespace (pivot_root), or on the machine itself",
      ),
    ];
  const result: Finding[] = [];
  if (setting(NAMESPACES_MAX) === "0")
    result.push(problem(`user namespaces are disabled (${NAMESPACES_MAX} is 0)`, `sysctl -w ${NAMESPACES_MAX}=15000 (${keepIt})`));
  if (options.rootless && setting(CLONE) === "0")
    result.push(
      problem(`ordinary users may not create user namespaces (${CLONE} is 0)`, `sysctl -w ${CLONE}=1 (${keepIt}), or run Caisson as root`),
    );
  if (options.rootless && setting(APPARMOR) === "1")
    result.push(
      problem(
        `AppArmor gives ordinary users no capabilities in user namespaces (${APPARMOR} is 1, as on Ubuntu 23.10 and later)`,
        `sysctl -w ${APPARMOR}=0 (${keepIt}), or run Caisson as root`,
      ),
    );
  return result;
}
