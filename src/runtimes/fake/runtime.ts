import { type Duplex, duplexPair } from "node:stream";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { SandboxConfig, SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import type { SandboxEvent } from "../../contract/sandbox/sandbox-event.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { type GuestConnection, greet } from "../../sandbox/guest/connection.ts";
import { type GuestCondition, silenceError } from "../../sandbox/guest/waits.ts";
import { createGuestSandbox } from "../../sandbox/guest-sandbox.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { refuseMemory } from "../../sandbox/refuse-memory.ts";
import type { Runtime, SnapshotInfo } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { configOfFork, parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { emitCreated } from "../../sandbox/sandbox-events.ts";
import { checkMounts, sharedFolders } from "../../sandbox/shared-folders.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { fakeCapabilities as capabilities, checkConfig } from "./capabilities.ts";
import { type Clock, systemClock } from "./clock.ts";
import { FakeMachine } from "./machine.ts";
import { MemoryFiles } from "./memory-files.ts";
import { unpackIntoMemory } from "./memory-tar.ts";
import { basicPrograms, type Program } from "./program.ts";
import { serveGuest } from "./serve-guest.ts";

export interface FakeRuntimeOptions {
  clock?: Clock;
  /** Programs by name, in addition to the basic ones. `sh -c script name …` also runs the program of that name. */
  programs?: Readonly<Record<string, Program>>;
  onEvent?: (event: SandboxEvent) => void;
}

export interface FakeRuntime extends Runtime {
  /** Connects to a port as a program inside would. Returns null if nothing listens there. Throws `not_found`. */
  connectInside(id: SandboxId, port: number): Duplex | null;
  /**
   * Ends the sandbox as if its process 1 were killed. Its files can be salvaged unless they are `gone`. Throws
   * `not_found`.
   */
  kill(id: SandboxId, options?: { files?: "left" | "gone" }): Promise<void>;
  /** Returns the number of connected handles. Throws `not_found`. */
  connections(id: SandboxId): number;
  /** Silences the guest as if it were stopped, and reports that condition to the host. Throws `not_found`. */
  stop(id: SandboxId, condition?: GuestCondition): void;
  /** Lets a silenced guest continue, and deliver its output. */
  resume(id: SandboxId): void;
}

const NAME = "fake";
const USER = 1000;
const GREETING_MS = 5_000;
const warnings = ["This is the fake runtime: programs are simulated in memory and no limit is enforced."];

interface Room {
  info: SandboxInfo;
  config: SandboxConfig;
  machine: FakeMachine;
  connections: Set<GuestConnection>;
  /** The guest's ends of `connections`. */
  insides: Set<Duplex>;
  /** The guest's condition as the host sees it. Only a running guest answers. */
  condition: GuestCondition;
  /** What a dead sandbox left behind; null while it lives. */
  remains: { files: MemoryFiles | null } | null;
}

/** What the parts of this runtime share. */
interface FakeContext {
  clock: Clock;
  programs: ReadonlyMap<string, Program>;
  rooms: Map<SandboxId, Room>;
  snapshots: Map<SnapshotId, { info: SnapshotInfo; files: MemoryFiles }>;
  onEvent: FakeRuntimeOptions["onEvent"] | undefined;
}

/**
 * Creates sandboxes in memory, for tests of code that uses sandboxes: fast and deterministic, with a clock and programs
 * that the test chooses. Files, processes and the guest's protocol behave as in real sandboxes, with the same client
 * and the same conformance suite.
 */
export function createFakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  const fake: FakeContext = {
    clock: options.clock ?? systemClock,
    programs: new Map(Object.entries({ ...basicPrograms, ...options.programs })),
    rooms: new Map(),
    snapshots: new Map(),
    onEvent: options.onEvent,
  };
  const { rooms, snapshots } = fake;
  const roomOf = (id: SandboxId): Room => {
    const room = rooms.get(id);
    if (room === undefined) throw new CaissonError("not_found", `there is no sandbox ${id}`);
    return room;
  };
  const runtime: FakeRuntime = {
    name: NAME,
    capabilities: async () => capabilities,
    probe: async () => ({
      usable: true,
      startMs: null,
      findings: [{ level: "note", text: "The fake runtime runs nothing for real; it exists for tests." }],
    }),
    async create(requestedConfig, { signal } = {}) {
      const parsed = parseSandboxConfig(requestedConfig);
      const config = { ...parsed, mounts: checkMounts(parsed.mounts) };
      checkConfig(config);
      const checkCancelled = () => {
        if (signal?.aborted) throw new CaissonError("cancelled", "sandbox creation was cancelled", { cause: signal.reason });
      };
      checkCancelled();
      const files = await filesFor(fake, config);
      checkCancelled();
      return enter(fake, build(fake, config, files));
    },
    async open(id) {
      const room = roomOf(id);
      if (room.remains !== null) throw new CaissonError("lost", `sandbox ${id} has died; only its remains exist`);
      if (room.condition !== "running") throw silenceError(`opening sandbox ${id}`, room.condition === "stopped" ? "stopped" : "silent");
      return enter(fake, room);
    },
    async salvage(id, { name }) {
      const files = roomOf(id).remains?.files;
      if (!files) throw new CaissonError("lost", `nothing is left of sandbox ${id}`);
      return keep(fake, roomOf(id), { files, name });
    },
    async kill(id, { files = "left" } = {}) {
      const room = roomOf(id);
      if (room.remains !== null) return;
      room.remains = { files: files === "left" ? room.machine.files : null };
      room.machine.killAll();
      for (const connection of room.connections) connection.close();
    },
    connections: (id) => roomOf(id).insides.size,
    stop(id, condition = "stopped") {
      const room = roomOf(id);
      room.condition = condition;
      for (const inside of room.insides) inside.pause();
    },
    resume(id) {
      const room = roomOf(id);
      room.condition = "running";
      for (const inside of room.insides) inside.resume();
    },
    async look(id) {
      const { remains, condition, machine } = roomOf(id);
      const processes = remains === null ? machine.live() : [];
      const seen = processes.map(({ pid, argv }) => ({ pid, state: "S", command: argv.join(" "), cpuMs: 0, memoryBytes: 0 }));
      return { condition: remains === null ? condition : "dead", stats: null, processes: seen };
    },
    async restart(id, { beforeEnd } = {}) {
      const room = roomOf(id);
      if (room.remains === null) await beforeEnd?.();
      await runtime.kill(id);
      if (!room.remains?.files) throw new CaissonError("unsupported", `nothing is left of sandbox ${id}`);
      room.machine = new FakeMachine({ files: room.remains.files, clock: fake.clock, programs: fake.programs });
      room.remains = null;
      room.condition = "running";
    },
    connectInside: (id, port) => roomOf(id).machine.connect(port),
    list: async () => [...rooms.values()].map(({ info }) => info),
    async sweep() {
      const dead = [...rooms.values()].filter(({ remains }) => remains !== null).map(({ info }) => info.id);
      for (const id of dead) rooms.delete(id);
      return dead;
    },
    discard: async (id) => void rooms.delete(id),
    snapshots: async () => [...snapshots.values()].map(({ info }) => info),
    async removeSnapshot(id) {
      if (!snapshots.delete(id)) throw new CaissonError("not_found", `there is no snapshot ${id}`);
    },
    async [Symbol.asyncDispose]() {},
  };
  return runtime;
}

/** Returns a handle of a sandbox over a separate guest connection. */
async function enter(fake: FakeContext, room: Room): Promise<OwnedSandbox> {
  const [inside, outside] = duplexPair();
  serveGuest(room.machine, inside, { uid: USER, rootAllowed: room.config.allowRoot });
  const connection = await greet({ socket: outside, name: room.info.id, timeoutMs: GREETING_MS });
  room.connections.add(connection);
  room.insides.add(inside);
  inside.once("close", () => room.insides.delete(inside));
  const { id } = room.info;
  const refuseUnsupported = (what: "pause") => {
    throw new CaissonError("unsupported", `the fake runtime cannot ${what}: ${capabilities.reasons[what]}`);
  };
  return createGuestSandbox({
    info: room.info,
    config: room.config,
    connection,
    onEvent: fake.onEvent,
    wall: {
      stats: async () => ({
        cpuMs: null,
        memoryBytes: null,
        memoryKills: null,
        processes: room.machine.live().length,
        diskBytes: null,
        source: "host",
      }),
      condition: async () => room.condition,
      pause: async () => refuseUnsupported("pause"),
      resume: async () => {},
      async snapshot({ name, ...options }) {
        refuseMemory(options, "fake");
        return keep(fake, room, { files: room.machine.files, name: name ?? null });
      },
      async fork(options) {
        refuseMemory(options, "fake");
        return enter(fake, build(fake, configOfFork(room.config, options), room.machine.files.clone()));
      },
      async release() {},
      async destroy() {
        fake.rooms.delete(id);
        room.machine.killAll();
        connection.close();
      },
    },
  });
}

function build({ clock, programs, rooms, onEvent }: FakeContext, config: SandboxConfig, files: MemoryFiles): Room {
  const { template, workspace, mounts, network, allowRoot, keep, labels, name, owner = LOCAL_OWNER } = config;
  const { wallClockMs = defaultLimits.wallClockMs, outputBytes = null } = config.limits;
  const limits = { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs, outputBytes };
  const createdAt = new Date(clock.now()).toISOString();
  const common = {
    template,
    workspace,
    mounts,
    network,
    allowRoot,
    keep,
    labels,
    owner,
    limits,
    warnings,
    createdAt,
    ...defined({ name }),
  };
  const info: SandboxInfo = { ...common, id: newId("sb"), runtime: NAME, state: "running" };
  const room: Room = {
    info,
    config,
    machine: new FakeMachine({ files, clock, programs }),
    connections: new Set(),
    insides: new Set(),
    condition: "running",
    remains: null,
  };
  rooms.set(info.id, room);
  emitCreated(onEvent, info);
  return room;
}

async function filesFor({ clock, snapshots }: FakeContext, config: SandboxConfig): Promise<MemoryFiles> {
  if (config.template.kind === "snapshot") {
    const snapshot = snapshots.get(config.template.id);
    if (snapshot === undefined) throw new CaissonError("not_found", `there is no snapshot ${config.template.id}`);
    return snapshot.files.clone();
  }
  const files = freshTree(clock);
  for (const { path, target } of sharedFolders(config)) {
    const bounds = { bytesMax: 0, entriesMax: 0, stripComponents: 0, uid: USER };
    if (target !== WORKSPACE) files.mkdir(target, { parents: true, mode: 0o755, uid: USER });
    await unpackIntoMemory(files, target, packFolder(path), bounds);
  }
  return files;
}

/** Stores files as a snapshot. */
function keep(
  { snapshots, clock }: FakeContext,
  { info: { id: sandbox, owner } }: Room,
  snapshot: { files: MemoryFiles; name: string | null },
): SnapshotId {
  const { files, name } = snapshot;
  const info = { id: newId("sn"), name, sandbox, owner, createdAt: new Date(clock.now()).toISOString(), bytes: 0 };
  snapshots.set(info.id, { info, files: files.clone() });
  return info.id;
}

function freshTree(clock: Clock): MemoryFiles {
  const files = new MemoryFiles({ now: clock.now });
  for (const path of ["/tmp", "/usr", "/etc", "/root"])
    files.mkdir(path, { parents: true, mode: path === "/tmp" ? 0o1777 : 0o755, uid: 0 });
  for (const path of [WORKSPACE, "/home/user"]) files.mkdir(path, { parents: true, mode: 0o755, uid: USER });
  return files;
}
