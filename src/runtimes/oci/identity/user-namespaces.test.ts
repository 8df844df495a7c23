import { describe, expect, it } from "vitest";
import { userNamespaceFindings } from "./user-namespaces.ts";

const found = (files: Record<string, string>, options: { rootless: boolean; chroot?: boolean }) =>
  userNamespaceFindings((path) => files[path] ?? null, options).map(({ level, text, fix }) => `${level}: ${text} → ${fix}`);
const usual = { "/proc/self/uid_map": "0 0 4294967295\n", "/proc/sys/user/max_user_namespaces": "95000\n" };
const ubuntu = {
  ...usual,
  "/proc/sys/kernel/unprivileged_userns_clone": "1\n",
  "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
};

describe("userNamespaceFindings", () => {
  it.each([true, false])("reports nothing on a usual machine, rootless %s", (rootless) => {
    expect(found(usual, { rootless })).toEqual([]);
    expect(found({ ...ubuntu, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n" }, { rootless })).toEqual([]);
  });
  it("reports AppArmor's restriction only to ordinary users, with its setting", () => {
    expect(found(ubuntu, { rootless: true })).toEqual([
      expect.stringMatching(/^problem: AppArmor .*→ sysctl -w kernel\.apparmor_restrict_unprivileged_userns=0 \(as root/),
    ]);
    expect(found(ubuntu, { rootless: false })).toEqual([]);
  });
  it("reports Debian's old switch only to ordinary users", () => {
    const off = { ...usual, "/proc/sys/kernel/unprivileged_userns_clone": "0\n" };
    expect(found(off, { rootless: true })).toEqual([expect.stringMatching(/→ sysctl -w kernel\.unprivileged_userns_clone=1 \(as root/)]);
    expect(found(off, { rootless: false })).toEqual([]);
  });
  it.each([true, false])("reports disabled user namespaces to every user, rootless %s", (rootless) => {
    const none = { ...usual, "/proc/sys/user/max_user_namespaces": "0\n" };
    expect(found(none, { rootless })).toEqual([expect.stringMatching(/→ sysctl -w user\.max_user_namespaces=15000 \(as root/)]);
  });
  it("distinguishes a chroot from a setting", () => {
    expect(found(usual, { rootless: false, chroot: true })).toEqual([expect.stringMatching(/^problem: this is a chroot/)]);
  });
  it("suggests no setting for a kernel without user namespaces", () => {
    expect(found({}, { rootless: false })).toEqual([expect.stringMatching(/this kernel has no user namespaces → .*CONFIG_USER_NS=y/)]);
  });
});
