import { describe, expect, it } from "vitest";
import { cgroupFolders, cgroupNames } from "./cgroup.ts";
import type { Hierarchy } from "./cgroup-layout.ts";
import { type CgroupAccess, type CgroupParentsOptions, cgroupParents } from "./cgroup-parents.ts";

const v1 = (controllers: string[], own = "/"): Hierarchy => {
  const mountPoint = `/sys/fs/cgroup/${controllers.join()}`;
  return { version: 1, controllers, mountPoint, own: own === "/" ? mountPoint : mountPoint + own };
};
const hybrid: Hierarchy[] = [
  v1(["cpu", "cpuacct"]),
  v1(["memory"], "/user/me"),
  v1(["pids"]),
  v1(["freezer"]),
  v1(["blkio"]),
  { version: 2, controllers: ["hugetlb"], mountPoint: "/sys/fs/cgroup/unified", own: "/sys/fs/cgroup/unified" },
];
const top = "/sys/fs/cgroup";
const service = `${top}/user.slice/user-1000.slice/user@1000.service`;
const unified = (own: string): Hierarchy[] => [
  { version: 2, controllers: ["cpuset", "cpu", "io", "memory", "pids"], mountPoint: top, own: top + own },
];
const inScope = unified("/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope");
const inSession = unified("/user.slice/user-1000.slice/session-c1.scope");

const everything: CgroupAccess = { writable: () => true, read: () => "cpu memory pids" };
/** A machine with the given file contents, whose user may write below the user's service. */
const userOwned = (files: Record<string, string>): CgroupAccess => ({
  writable: (path) => path.startsWith(service),
  read: (path) => files[path] ?? "",
});
const manager = {
  find: () => ({ endpoints: [{ socketPath: "/run/user/1000/bus", direct: false }], dir: service, lingering: false }),
  silent: null,
};
const ordinary = (layout: Hierarchy[], access: CgroupAccess, more: Partial<CgroupParentsOptions> = {}) =>
  cgroupParents({ layout, root: false, access, ...more });

describe("cgroupParents as root", () => {
  it("are below the top of each useful hierarchy", () => {
    const { parents, reason } = cgroupParents({ layout: hybrid, root: true, access: everything });
    expect(parents.map(({ dir }) => dir.slice(15))).toEqual(["cpu,cpuacct", "memory", "pids", "freezer", "unified"]);
    expect(reason).toBeNull();
  });
  it("are empty if groups are read-only, and the reason says so", () => {
    const { parents, reason } = cgroupParents({ layout: inScope, root: true, access: { ...everything, writable: () => false } });
    expect(parents).toEqual([]);
    expect(reason).toMatch(/read-only/);
  });
  it("never ask the user's systemd", () => {
    expect(cgroupParents({ layout: inScope, root: true, access: everything, manager }).parents).toMatchObject([
      { dir: top, makes: "caisson" },
    ]);
  });
});

describe("cgroupParents of an ordinary user without systemd", () => {
  it("are empty without delegation, with a fix for the user's own command", () => {
    const access = { ...everything, writable: () => false };
    const { parents, reason } = ordinary(hybrid, access, { command: "caisson exec --memory 64m -- true" });
    expect(parents).toEqual([]);
    expect(reason).toMatch(
      /^no control group is delegated to this user, so memory and cpus cannot be limited, and only processes of the sandbox's own user are counted; /,
    );
    expect(reason).toContain("`sudo caisson exec --memory 64m -- true`");
  });
  it("on v1, include only groups that the user owns", () => {
    const access = { ...everything, writable: (path: string) => path.startsWith("/sys/fs/cgroup/memory/user/me") };
    const { parents, reason } = ordinary(hybrid, access);
    expect(parents.map(({ dir }) => dir)).toEqual(["/sys/fs/cgroup/memory/user/me"]);
    expect(reason).toContain("cpus cannot be limited, and only processes of the sandbox's own user are counted");
  });
  it("on v2, are the nearest group above that may limit, with its controllers", () => {
    const access = userOwned({
      [`${service}/cgroup.subtree_control`]: "memory pids\n",
      [`${service}/cgroup.controllers`]: "memory pids\n",
      [`${top}/cgroup.controllers`]: "cpuset cpu io memory pids\n",
    });
    const { parents, reason } = ordinary(inScope, access);
    expect(parents).toMatchObject([{ dir: service, controllers: ["memory", "pids"], makes: "caisson" }]);
    expect(reason).toMatch(/lacks cpu, so cpus cannot be limited/);
  });
});

describe("cgroupParents of an ordinary user with a user systemd", () => {
  const all = userOwned({ [`${service}/cgroup.controllers`]: "cpu memory pids\n" });

  it.each([
    ["in a login session, where nothing is delegated", inSession],
    ["in their own scope", inScope],
  ])("are scopes that systemd creates %s", (_, layout) => {
    const found = ordinary(layout, all, { manager });
    expect(found.parents).toMatchObject([{ dir: `${service}/app.slice`, controllers: ["cpu", "memory", "pids"], makes: "systemd" }]);
    expect(found.reason).toBeNull();
    expect(found.manager?.dir).toBe(service);
    const [folder] = cgroupFolders(found.parents, "caisson-0a1b", "sb_x");
    expect(folder).toMatchObject({ dir: `${service}/app.slice/caisson-0a1b-sb_x.scope`, scope: true });
  });
  it("limit memory and pids without cpu, and the reason has the exact fix", () => {
    const access = userOwned({ [`${service}/cgroup.controllers`]: "memory pids\n" });
    const { parents, reason } = ordinary(inSession, access, { manager });
    expect(parents).toMatchObject([{ controllers: ["memory", "pids"] }]);
    expect(reason).toBe(
      "systemd does not delegate cpu to this user, so cpus cannot be limited; as root: `mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=memory pids cpu\\n' > /etc/systemd/system/user@.service.d/caisson.conf && systemctl daemon-reload`, then log in again",
    );
  });
  it("ignore a systemd that does not answer, and give the reason", () => {
    const silent = "the user's systemd created no control group: timed out";
    const found = ordinary(inSession, all, { manager: { ...manager, silent } });
    expect(found.parents).toEqual([]);
    expect(found.manager).toBeNull();
    expect(found.reason).toMatch(/^the user's systemd created no control group: timed out, so memory/);
  });
  it("do not involve systemd on v1, where it has nothing to delegate", () => {
    expect(ordinary(hybrid, { ...everything, writable: () => false }, { manager }).parents).toEqual([]);
  });
});

it("finds no groups in a folder that does not exist", () => {
  const parent = { version: 2 as const, controllers: [], dir: "/nowhere", own: null };
  expect(cgroupNames([{ ...parent, makes: "caisson" }], "caisson-0a1b")).toEqual([]);
  expect(cgroupNames([{ ...parent, makes: "systemd" }], "caisson-0a1b")).toEqual([]);
});
