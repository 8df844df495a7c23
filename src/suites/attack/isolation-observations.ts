import { kernelSettings } from "./isolation-claims.ts";

const refusedCalls = {
  end: "ok",
  io_uring_setup: "EPERM",
  io_uring_enter: "ENOSYS",
  io_uring_register: "EPERM",
  unshare_user: "EPERM",
  clone_user: "EPERM",
  clone3_user: "ENOSYS",
  ptrace_init: "EPERM",
  process_vm_readv_init: "EPERM",
  process_vm_writev_init: "EPERM",
  proc_mem_init: "EACCES",
  pidfd_getfd_init: "EPERM",
  mknod_disk: "EPERM",
  mknod_memory: "EPERM",
  landlock: "ok",
};
const calls = { user: refusedCalls, root: { ...refusedCalls, chroot: "ok" } };
const callsBut = (name: string, result = "ok") => [
  { ...calls, user: { ...refusedCalls, [name]: result } },
  { ...calls, root: { ...refusedCalls, [name]: result } },
  { ...calls, user: { ...refusedCalls, end: "" } },
];

/**
 * A file that is hidden behind the null device opens without being a hole. One that opens otherwise is a hole, and one
 * that was not tried proves nothing.
 */
function opening(paths: string[]) {
  const refused = Object.fromEntries(paths.map((path) => [path, "EACCES"]));
  const [first = ""] = paths;
  return {
    right: { user: { ...refused, [first]: "null" }, root: { ...refused, [first]: "EROFS" } },
    wrong: [
      { user: { ...refused, [first]: "ok" }, root: null },
      { user: refused, root: { ...refused, [first]: "ok" } },
      { user: {}, root: null },
      { user: refused, root: {} },
    ],
  };
}

/** For each isolation claim, one right observation and several that are wrong in one way each. */
export const isolationObservations: Readonly<Record<string, { right: unknown; wrong: unknown[] }>> = {
  I01: {
    right: calls,
    wrong: [...callsBut("bpf"), ...callsBut("quotactl", "ENOENT"), { ...calls, user: { ...refusedCalls, chroot: "ok" } }],
  },
  I02: { right: calls, wrong: callsBut("io_uring_setup", "EFAULT") },
  I03: { right: calls, wrong: callsBut("clone3_user") },
  I05: { right: calls, wrong: callsBut("process_vm_readv_init", "EFAULT") },
  I06: {
    right: { user: true, root: true },
    wrong: [
      { user: false, root: true },
      { user: true, root: false },
    ],
  },
  I07: opening(["/proc/1/exe"]),
  I09: {
    right: { refused: ["dev"], started: ["tmp"], touched: [] },
    wrong: [{ refused: [], started: ["dev"], touched: ["null through dev"] }],
  },
  I11: opening(kernelSettings),
  I12: {
    right: { writable: [], agents: [] },
    wrong: [
      { writable: ["/sys/fs/cgroup/x"], agents: [] },
      { writable: [], agents: ["release_agent"] },
    ],
  },
  I13: {
    right: { sockets: [], opened: [] },
    wrong: [
      { sockets: ["/run/x.sock"], opened: [] },
      { sockets: [], opened: ["/run/docker.sock"] },
    ],
  },
  I16: { right: calls, wrong: callsBut("mknod_disk") },
  I18: {
    right: { noNewPrivileges: "1", before: "1000", after: "1000" },
    wrong: [
      { noNewPrivileges: "0", before: "1000", after: "1000" },
      { noNewPrivileges: "1", before: "1000", after: "0" },
    ],
  },
  I19: {
    right: { readable: [], log: "", devices: [] },
    wrong: [
      { readable: ["/proc/kcore"], log: "", devices: [] },
      { readable: [], log: "[0.0] Linux", devices: [] },
      { readable: [], log: "", devices: ["/dev/sda"] },
    ],
  },
  I20: {
    right: { processes: false, files: [], stateDir: false, hostProcess: false },
    wrong: [
      { processes: true, files: [], stateDir: false, hostProcess: false },
      { processes: false, files: ["/tmp/x"], stateDir: false, hostProcess: false },
      { processes: false, files: [], stateDir: true, hostProcess: false },
      { processes: false, files: [], stateDir: false, hostProcess: true },
    ],
  },
  I27: {
    right: { said: { user: "end", root: "end" }, touched: [], readable: true },
    wrong: [
      { said: { user: "append end" }, touched: [], readable: true },
      { said: { user: "" }, touched: [], readable: true },
      { said: { user: "end" }, touched: ["made"], readable: true },
      { said: { user: "end" }, touched: [], readable: false },
    ],
  },
  I26: {
    right: { user: [], root: "refused", tried: 12 },
    wrong: [
      { user: ["mknod (6755)"], root: "refused", tried: 12 },
      { user: [], root: ["chmod (4755)"], tried: 12 },
      { user: [], root: [], tried: 0 },
    ],
  },
};
