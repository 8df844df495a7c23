import { describe, expect, it } from "vitest";
import type { Capabilities } from "../../contract/sandbox.ts";
import { exhaustionObservations } from "./exhaustion-observations.ts";
import { kernelSettings } from "./isolation-claims.ts";
import { claims } from "./suite.ts";

const capabilities: Capabilities = {
  isolation: 1,
  sharesHostFilesystem: true,
  templates: ["host"],
  workspaceAccess: ["overlay"],
  mounts: ["overlay"],
  workspaceLayer: false,
  limits: { cpus: true, memoryBytes: true, pids: true, diskBytes: true },
  network: ["none"],
  transparentNetwork: false,
  rootUser: true,
  pause: true,
  snapshot: true,
  paths: true,
  reattach: true,
  reasons: {},
};

const MIB = 1024 * 1024;
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
const hostile = { answers: { trick: "protocol" }, grownBytes: 0, others: true };
const hostileBut = [
  { ...hostile, answers: { trick: "stayed open" } },
  { ...hostile, grownBytes: 2000 * MIB },
  { ...hostile, others: false },
];

/**
 * A file that is hidden behind the null device opens and is no hole; one that opens otherwise is, and one that was not
 * tried proves nothing.
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

/** For each claim one observation that is right and several that are wrong, each in one way. */
const observations: Record<string, { right: unknown; wrong: unknown[] }> = {
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
  H01: { right: { leaked: [], answers: {} }, wrong: [{ leaked: ["link-to-file"], answers: {} }] },
  H03: {
    right: { landed: [], uploads: 9, refused: 9 },
    wrong: [
      { landed: ["file1"], uploads: 9, refused: 0 },
      { landed: [], uploads: 0, refused: 0 },
    ],
  },
  H04: {
    right: { "reading dots": "invalid", "reading percent-encoded": "not_found" },
    wrong: [{ "reading dots": "succeeded" }, { "reading dots": "not_found" }, { "reading percent-encoded": "succeeded" }],
  },
  H05: {
    right: { answers: { x: "unsafe" }, touched: [] },
    wrong: [
      { answers: { x: "succeeded" }, touched: [] },
      { answers: { x: "unsafe" }, touched: ["dots"] },
    ],
  },
  H06: {
    right: { code: "too_large", taken: 9 * MIB, gzip: "invalid" },
    wrong: [
      { code: "succeeded", taken: 9 * MIB, gzip: "invalid" },
      { code: "too_large", taken: 512 * MIB, gzip: "invalid" },
      { code: "too_large", taken: 9 * MIB, gzip: "succeeded" },
    ],
  },
  H10: { right: hostile, wrong: hostileBut },
  H12: { right: hostile, wrong: hostileBut },
  H13: {
    right: { frames: 1_000_000, foreign: [], heldBytesMax: 100 },
    wrong: [
      { frames: 10, foreign: [], heldBytesMax: 100 },
      { frames: 1_000_000, foreign: ["RangeError"], heldBytesMax: 100 },
      { frames: 1_000_000, foreign: [], heldBytesMax: 4_000_000_000 },
    ],
  },
  H14: {
    right: { paths: [], lived: true, removed: [] },
    wrong: [
      { paths: ["/run/guest.sock"], lived: true, removed: [] },
      { paths: [], lived: false, removed: [] },
      { paths: [], lived: true, removed: ["/run/guest.sock as root"] },
    ],
  },
  H16: {
    right: { polluted: false, names: ["__proto__"], variable: "own" },
    wrong: [
      { polluted: true, names: ["__proto__"], variable: "own" },
      { polluted: false, names: [], variable: "own" },
    ],
  },
  H18: {
    right: { source: "host", before: 1, after: 500 },
    wrong: [
      { source: "guest", before: 1, after: 500 },
      { source: "host", before: 5, after: 5 },
    ],
  },
  N01: {
    right: { results: { "tcp 10.0.0.1 80": "ENETUNREACH", end: "ok" }, arrived: 0 },
    wrong: [
      { results: { "tcp 10.0.0.1 80": "ok", end: "ok" }, arrived: 0 },
      { results: { "tcp 10.0.0.1 80": "ETIMEDOUT", end: "ok" }, arrived: 0 },
      { results: { end: "ok" }, arrived: 1 },
      { results: {}, arrived: 0 },
    ],
  },
  N03: {
    right: { interfaces: ["lo"], results: { "udp 8.8.8.8 53": "ENETUNREACH" }, resolved: "" },
    wrong: [
      { interfaces: ["lo", "eth0"], results: {}, resolved: "" },
      { interfaces: ["lo"], results: { "udp 8.8.8.8 53": "ok" }, resolved: "" },
      { interfaces: ["lo"], results: {}, resolved: "1.2.3.4 data.example.com" },
    ],
  },
  N04: {
    right: { interfaces: ["lo"], routes: [], results: { "tcp 1.1.1.1 443": "ENETUNREACH" } },
    wrong: [
      { interfaces: ["eth0"], routes: [], results: {} },
      { interfaces: ["lo"], routes: ["eth0 0000"], results: {} },
      { interfaces: ["lo"], routes: [], results: { "icmp 1.1.1.1 0": "ok" } },
    ],
  },
  N02: {
    right: { answers: { "127.0.0.1:80": "403", "localhost:80": "502" }, arrived: 0 },
    wrong: [
      { answers: { "127.0.0.1:80": "200" }, arrived: 0 },
      { answers: { "127.0.0.1:80": "no answer: " }, arrived: 0 },
      { answers: { "127.0.0.1:80": "403" }, arrived: 1 },
    ],
  },
  N10: {
    right: { answers: { "127.0.0.1:80": "403", "localhost:80": "502" }, arrived: 0 },
    wrong: [
      { answers: { "127.0.0.1:80": "200" }, arrived: 0 },
      { answers: { "127.0.0.1:80": "no answer: " }, arrived: 0 },
      { answers: { "127.0.0.1:80": "403" }, arrived: 1 },
    ],
  },
  N14: {
    right: { connected: true, received: "" },
    wrong: [
      { connected: true, received: "PRI * HTTP/2.0" },
      { connected: false, received: "" },
    ],
  },
  N13: {
    right: { port: "8080", result: "ECONNREFUSED" },
    wrong: [
      { port: "8080", result: "ok" },
      { port: "", result: "ECONNREFUSED" },
    ],
  },
  ...exhaustionObservations,
  D02: {
    right: { outcome: "lost", closed: "lost", next: "lost", left: false },
    wrong: [
      { outcome: "exited", closed: "lost", next: "lost", left: false },
      { outcome: "lost", closed: "destroyed", next: "lost", left: false },
      { outcome: "lost", closed: "lost", next: "succeeded", left: false },
      { outcome: "lost", closed: "lost", next: "lost", left: true },
    ],
  },
  D04: {
    right: { aborted: 5, finished: 7, listed: [], mounts: 0 },
    wrong: [
      { aborted: 5, finished: 7, listed: ["sb_aaaaaaaaaaaa"], mounts: 0 },
      { aborted: 5, finished: 7, listed: [], mounts: 3 },
      { aborted: 0, finished: 12, listed: [], mounts: 0 },
    ],
  },
  D05: {
    right: { files: "read back", command: "timedOut", after: "exited" },
    wrong: [
      { files: '""', command: "timedOut", after: "exited" },
      { files: "read back", command: "lost", after: "exited" },
      { files: "read back", command: "timedOut", after: "lost" },
    ],
  },
  D06: {
    right: { file: "timeout stopped", command: "timeout stopped", after: "exited" },
    wrong: [
      { file: "succeeded", command: "timeout stopped", after: "exited" },
      { file: "timeout stopped", command: "timeout slow", after: "exited" },
      { file: "timeout stopped", command: "timeout stopped", after: "lost" },
    ],
  },
};

describe("the judges of the attack suite", () => {
  it("are each tried", () => {
    expect(Object.keys(observations).sort()).toEqual(claims.map((claim) => claim.id).sort());
  });

  for (const claim of claims) {
    const { right, wrong } = observations[claim.id] ?? { right: null, wrong: [] };
    it(`${claim.id} holds on what is right and fails on each wrong observation`, () => {
      expect(claim.judge(right, { capabilities })).toEqual([]);
      expect(wrong.length).toBeGreaterThan(0);
      for (const seen of wrong) expect(claim.judge(seen, { capabilities }), JSON.stringify(seen)).not.toEqual([]);
    });
  }
});
