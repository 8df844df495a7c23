import { statSync } from "node:fs";
import type { Finding } from "../../../sandbox/runtime.ts";

/** The kernel's settings and other small files by their path; null where there is none. */
export type ReadSetting = (path: string) => string | null;

const CLONE = "kernel.unprivileged_userns_clone";
const APPARMOR = "kernel.apparmor_restrict_unprivileged_userns";
const NAMESPACES_MAX = "user.max_user_namespaces";
const keepIt = "as root; in a file of /etc/sysctl.d to keep it";

/** Whether this process's root is not that of process 1; nobody but root may look. */
export function isChroot(): boolean {
  try {
    const [own, first] = [statSync("/"), statSync("/proc/1/root/.")];
    return own.dev !== first.dev || own.ino !== first.ino;
  } catch {
    return false;
  }
}

/** Why this machine lets nobody, or no ordinary user, have user namespaces, each with the setting that changes it. */
export function userNamespaceFindings(read: ReadSetting, options: { rootless: boolean; chroot?: boolean }): Finding[] {
  const setting = (name: string) => read(`/proc/sys/${name.replaceAll(".", "/")}`)?.trim() ?? null;
  const problem = (text: string, fix: string): Finding => ({ level: "problem", text, fix });
  if (read("/proc/self/uid_map") === null)
    return [
      problem("this kernel has no user namespaces", "use a kernel that was built with CONFIG_USER_NS=y, as those of all distributions are"),
    ];
  if (options.chroot === true)
    return [
      problem(
        "this is a chroot, in which the kernel allows no user namespaces",
        "run Caisson in a container or a mount namespace of its own (pivot_root), or on the machine itself",
      ),
    ];
  const result: Finding[] = [];
  if (setting(NAMESPACES_MAX) === "0")
    result.push(problem(`user namespaces are switched off (${NAMESPACES_MAX} is 0)`, `sysctl -w ${NAMESPACES_MAX}=15000 (${keepIt})`));
  if (options.rootless && setting(CLONE) === "0")
    result.push(
      problem(`ordinary users may have no user namespaces (${CLONE} is 0)`, `sysctl -w ${CLONE}=1 (${keepIt}), or run Caisson as root`),
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
