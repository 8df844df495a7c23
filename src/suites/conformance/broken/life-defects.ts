import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { type Defect, forgiving, noop, notWhatItIs } from "./broken-runtime.ts";

const emptyWorkspace = (config: SandboxConfig): SandboxConfig => ({ ...config, workspace: { kind: "empty" } });
const readWrite = (config: SandboxConfig): SandboxConfig =>
  config.workspace.kind === "folder" ? { ...config, workspace: { ...config.workspace, access: "rw" } } : config;
const noMounts = (config: SandboxConfig): SandboxConfig => ({ ...config, mounts: [] });
const mountedAs =
  (access: "overlay" | "rw") =>
  (config: SandboxConfig): SandboxConfig => ({ ...config, mounts: config.mounts.map((mount) => ({ ...mount, access })) });
const noPaths = (config: SandboxConfig): SandboxConfig => ({ ...config, readOnlyPaths: [], deniedPaths: [] });

function ignoredAccess(access: "overlay" | "rw" | "ro"): Defect {
  return {
    what: "the folder is omitted",
    capabilities: (good) => ({ ...good, workspaceAccess: good.workspaceAccess.filter((each) => each !== access) }),
    config: emptyWorkspace,
  };
}

function ignoredMount(access: "overlay" | "rw" | "ro"): Defect {
  return {
    what: "the mount is omitted",
    capabilities: (good) => ({ ...good, mounts: good.mounts.filter((each) => each !== access) }),
    config: noMounts,
  };
}

/** Claims to be paused, but is not. */
function pretendedPause(good: OwnedSandbox): Partial<OwnedSandbox> {
  let paused = false;
  return {
    get info() {
      return { ...good.info, state: paused ? ("paused" as const) : ("running" as const) };
    },
    async pause() {
      paused = true;
    },
    async resume() {
      paused = false;
    },
  };
}

const anyBase = SandboxConfig.parse({});

/**
 * Defects of a sandbox's lifecycle: one for each test whose name starts with input, life, workspace, mount, paths,
 * pause, fork or snapshot.
 */
export const lifeDefects: Record<string, Defect> = {
  "input: a malformed path is invalid in every method": {
    what: "a malformed path gives the wrong error",
    sandbox: (good) => ({ stat: (path, options) => forgiving("invalid", () => good.stat(path, options), notWhatItIs) }),
  },
  "input: a command without a program, with NUL or with a bad variable is invalid": {
    what: "a malformed command gives the wrong error",
    sandbox: (good) => ({ spawn: (options) => forgiving("invalid", () => good.spawn(options), notWhatItIs) }),
  },
  "input: an unknown user is invalid or denied": {
    what: "the user is ignored",
    spawn: ({ user: _user, ...options }) => options,
  },
  "input: file access as root is denied unless the config allows it": {
    what: "the user is ignored for files",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    sandbox: (good) => ({ stat: (path) => good.stat(path) }),
  },
  "input: negative offsets, lengths and limits are invalid": {
    what: "offset and length are ignored",
    sandbox: (good) => ({ readFile: (path) => good.readFile(path) }),
  },
  "input: a template that the runtime does not have is rejected": {
    what: "the template is ignored",
    config: (config) => ({ ...config, template: anyBase.template }),
  },
  "input: a network policy that cannot be enforced is rejected": {
    what: "the network policy is ignored",
    config: (config) => ({ ...config, network: { mode: "none" } }),
  },
  "life: capabilities are well-formed and the probe finds the runtime usable": {
    what: "the probe always fails",
    runtime: () => ({ probe: async () => ({ usable: false, startMs: null, findings: [] }) }),
  },
  "life: info is well-formed and matches the request": { what: "labels are forgotten", config: (config) => ({ ...config, labels: {} }) },
  "life: sandboxes are isolated from each other": {
    what: "there is only ever one sandbox",
    runtime(good) {
      let only: Promise<OwnedSandbox> | null = null;
      return {
        create(config, options) {
          only ??= good.create(config, options);
          return only;
        },
      };
    },
  },
  "life: ping answers and updates lastHeardMs": { what: "lastHeardMs is never updated", sandbox: () => ({ lastHeardMs: () => 0 }) },
  "life: stats are well-formed and count processes and processor time": {
    what: "nothing is counted",
    sandbox: (good) => ({ stats: async () => ({ ...(await good.stats()), processes: 0 }) }),
  },
  "life: list contains a live sandbox, but not a destroyed one": { what: "the list is empty", runtime: () => ({ list: async () => [] }) },
  "life: destroy is idempotent, ends processes and resolves closed": {
    what: "the end is not reported",
    sandbox: () => ({ closed: new Promise(() => {}) }),
  },
  "life: two concurrent destroys both resolve": {
    what: "a second destroy fails",
    sandbox(good) {
      let hasBegun = false;
      return {
        async destroy() {
          if (hasBegun) notWhatItIs();
          hasBegun = true;
          await good.destroy();
        },
      };
    },
  },
  "life: every call on a destroyed sandbox is lost": {
    what: "a destroyed sandbox has statistics",
    sandbox: (good) => ({
      stats: () =>
        forgiving(
          "lost",
          () => good.stats(),
          () => ({ cpuMs: 0, memoryBytes: 0, memoryKills: 0, processes: 0, diskBytes: 0, source: "host" as const }),
        ),
    }),
  },
  "life: leaving the scope destroys the sandbox": {
    what: "leaving the scope does nothing",
    sandbox: () => ({ [Symbol.asyncDispose]: noop }),
  },
  "life: a kept sandbox can be released and reopened with its files and processes": {
    what: "opening creates a new sandbox",
    capabilities: (good) => ({ ...good, reattach: true }),
    runtime: (good) => ({ open: () => good.create({ ...anyBase, keep: true }) }),
  },
  "life: release without keep is invalid": {
    what: "anything can be released",
    sandbox: (good) => ({ release: () => forgiving("invalid", () => good.release(), noop) }),
  },
  "life: detaching a handle leaves the sandbox and its other handles alone": {
    what: "detaching destroys",
    sandbox: (good) => ({ detach: () => good.destroy() }),
  },
  "life: opening a missing sandbox is not_found": {
    what: "opening a missing sandbox creates it",
    runtime: (good) => ({
      open: (id) =>
        forgiving(
          "not_found",
          () => good.open(id),
          () => good.create(anyBase),
        ),
    }),
  },
  "life: an aborted create is cancelled and leaves nothing behind": {
    what: "the abort signal is ignored",
    runtime: (good) => ({ create: (config) => good.create(config) }),
  },
  "life: sweep leaves live sandboxes alone": {
    what: "sweeping removes everything",
    runtime: (good) => ({
      async sweep() {
        const all = await good.list();
        for (const { id } of all) await (await good.open(id)).destroy();
        return all.map(({ id }) => id);
      },
    }),
  },
  "life: a failed create leaves nothing behind": { what: "a missing workspace is omitted", config: emptyWorkspace },
  "workspace: an overlay shows the folder and never changes it": {
    what: "an overlay is the folder itself",
    capabilities: (good) => ({ ...good, workspaceAccess: ["overlay", "rw"] }),
    config: readWrite,
  },
  "workspace: read-write changes the folder, and new files belong to its owner": {
    what: "the folder is omitted",
    capabilities: (good) => ({ ...good, workspaceAccess: ["overlay", "rw"] }),
    config: emptyWorkspace,
  },
  "workspace: read-only is readable, and every change is denied": {
    what: "read-only is read-write",
    capabilities: (good) => ({ ...good, workspaceAccess: ["ro", "rw"] }),
    config: readWrite,
  },
  "workspace: overlay is unsupported if the runtime lacks it": ignoredAccess("overlay"),
  "workspace: rw is unsupported if the runtime lacks it": ignoredAccess("rw"),
  "workspace: ro is unsupported if the runtime lacks it": ignoredAccess("ro"),
  "workspace: an empty workspace is empty, writable and removed with the sandbox": {
    what: "an empty workspace contains a file",
    runtime: (good) => ({
      async create(config, options) {
        const sandbox = await good.create(config, options);
        await sandbox.writeFile("/workspace/left-over", Buffer.from(""));
        return sandbox;
      },
    }),
  },
  "workspace: a layer keeps changes and the home folder for the next sandbox": {
    what: "the layer is omitted",
    capabilities: (good) => ({ ...good, workspaceLayer: true }),
    config: emptyWorkspace,
  },
  "workspace: a file instead of a folder is invalid": { what: "a workspace that is not a folder is omitted", config: emptyWorkspace },
  "mount: read-only is readable at its path, and every change is denied": {
    what: "read-only is an overlay",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "ro"] }),
    config: mountedAs("overlay"),
  },
  "mount: read-write changes the folder, and new files belong to its owner": {
    what: "read-write is an overlay",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "rw"] }),
    config: mountedAs("overlay"),
  },
  "mount: an overlay's changes stay inside and are removed with the sandbox": {
    what: "an overlay is the folder itself",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "rw"] }),
    config: mountedAs("rw"),
  },
  "mount: overlay is unsupported if the runtime lacks it": ignoredMount("overlay"),
  "mount: rw is unsupported if the runtime lacks it": ignoredMount("rw"),
  "mount: ro is unsupported if the runtime lacks it": ignoredMount("ro"),
  "mount: reserved paths and overlapping mounts are invalid": {
    what: "mounts are omitted",
    config: noMounts,
  },
  "paths: read-only paths cannot be changed, denied paths reveal nothing": {
    what: "paths are accepted but not protected",
    capabilities: (good) => ({ ...good, paths: true }),
    config: noPaths,
  },
  "paths: unsupported if the runtime lacks them": {
    what: "paths are ignored",
    capabilities: (good) => ({ ...good, paths: false }),
    config: noPaths,
  },
  "pause: nothing makes progress until resume": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: true }),
    sandbox: pretendedPause,
  },
  "pause: all calls except lifecycle calls are a conflict": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: true }),
    sandbox: pretendedPause,
  },
  "pause: pause and resume are idempotent, and a paused sandbox can be destroyed": {
    what: "pausing twice is an error",
    capabilities: (good) => ({ ...good, pause: true }),
    sandbox(good) {
      let paused = false;
      return {
        async pause() {
          if (paused) notWhatItIs();
          paused = true;
          await good.pause();
        },
      };
    },
  },
  "pause: unsupported if the runtime lacks it": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: false }),
    sandbox: () => ({ pause: noop }),
  },
  "fork: gets the current files, and no later changes from either side": {
    what: "a fork is the sandbox itself",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: (good) => ({ fork: async () => good }),
  },
  "fork: gets no processes, and the original's processes continue": {
    what: "a fork is the sandbox itself",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: (good) => ({ fork: async () => good }),
  },
  "snapshot: is listed with its name and outlives its sandbox": {
    what: "snapshots are not stored",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: () => ({ snapshot: async () => "sn_aaaaaaaaaaaa" }),
    runtime: () => ({ snapshots: async () => [], removeSnapshot: noop }),
  },
  "snapshot: unsupported if the runtime lacks it": {
    what: "a snapshot is faked",
    capabilities: (good) => ({ ...good, snapshot: false }),
    sandbox: () => ({ snapshot: async () => "sn_aaaaaaaaaaaa" }),
  },
};
