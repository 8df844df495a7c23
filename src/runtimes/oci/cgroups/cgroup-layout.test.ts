import { describe, expect, it } from "vitest";
import { cgroupLayout } from "./cgroup-layout.ts";

const hybrid = {
  mountinfo: [
    "24 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct",
    "31 25 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "32 25 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids",
    "33 25 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer",
    "34 25 0:30 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio",
    "35 25 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd",
    "36 25 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
  ].join("\n"),
  ownCgroups: ["5:name=systemd:/", "4:memory:/user/me", "3:cpu,cpuacct:/", "2:pids:/", "6:freezer:/", "7:blkio:/", "0::/"].join("\n"),
  unifiedControllers: () => ["hugetlb"],
};
const v2 = {
  mountinfo: "36 25 0:32 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate",
  ownCgroups: "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n",
  unifiedControllers: () => ["cpuset", "cpu", "io", "memory", "pids"],
};

describe("cgroupLayout", () => {
  it("reads a hybrid machine, without named hierarchies", () => {
    const layout = cgroupLayout(hybrid);
    expect(layout.map(({ version, controllers }) => `${version} ${controllers}`)).toEqual([
      "1 cpu,cpuacct",
      "1 memory",
      "1 pids",
      "1 freezer",
      "1 blkio",
      "2 hugetlb",
    ]);
    expect(layout[1]).toMatchObject({ mountPoint: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory/user/me" });
  });
  it("reads a pure v2 machine", () => {
    expect(cgroupLayout(v2)).toEqual([
      {
        version: 2,
        controllers: ["cpuset", "cpu", "io", "memory", "pids"],
        mountPoint: "/sys/fs/cgroup",
        own: `/sys/fs/cgroup${v2.ownCgroups.trim().slice(3)}`,
      },
    ]);
  });
  it("returns null for groups outside of a partial mount, as in a container", () => {
    const mountinfo = "31 25 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    const at = (path: string) => cgroupLayout({ ...v2, mountinfo, ownCgroups: `4:memory:${path}` })[0]?.own;
    expect(at("/docker/abc/x")).toBe("/sys/fs/cgroup/memory/x");
    expect(at("/elsewhere")).toBeNull();
  });
  it("unescapes blanks in mount points", () => {
    const mountinfo = "31 25 0:27 / /mnt/with\\040blank rw - cgroup2 none rw";
    expect(cgroupLayout({ ...v2, mountinfo, ownCgroups: "0::/" })[0]?.mountPoint).toBe("/mnt/with blank");
  });
});
