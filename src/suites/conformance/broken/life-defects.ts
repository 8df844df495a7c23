import { SandboxSpec } from "../../../contract/sandbox.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { type Defect, forgiving, noop, notWhatItIs } from "./broken-runtime.ts";

const emptyWorkspace = (asked: SandboxSpec): SandboxSpec => ({ ...asked, workspace: { kind: "empty" } });
const readWrite = (asked: SandboxSpec): SandboxSpec =>
  asked.workspace.kind === "folder" ? { ...asked, workspace: { ...asked.workspace, access: "rw" } } : asked;
const noMounts = (asked: SandboxSpec): SandboxSpec => ({ ...asked, mounts: [] });
const mountedAs =
  (access: "overlay" | "rw") =>
  (asked: SandboxSpec): SandboxSpec => ({ ...asked, mounts: asked.mounts.map((mount) => ({ ...mount, access })) });
const noPaths = (asked: SandboxSpec): SandboxSpec => ({ ...asked, readOnlyPaths: [], deniedPaths: [] });

function ignoredAccess(access: "overlay" | "rw" | "ro"): Defect {
  return {
    what: "the folder is left out",
    capabilities: (good) => ({ ...good, workspaceAccess: good.workspaceAccess.filter((each) => each !== access) }),
    spec: emptyWorkspace,
  };
}

function ignoredMount(access: "overlay" | "rw" | "ro"): Defect {
  return {
    what: "the mount is left out",
    capabilities: (good) => ({ ...good, mounts: good.mounts.filter((each) => each !== access) }),
    spec: noMounts,
  };
}

/** Says it is paused, and is not. */
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

const anyBase = SandboxSpec.parse({});

/**
 * Defects of a sandbox's life: one for each test that begins with input, life, workspace, mount, paths, pause, fork or
 * snapshot.
 */
export const lifeDefects: Record<string, Defect> = {
  "input: a malformed path is invalid in every method": {
    what: "a malformed path is some error",
    sandbox: (good) => ({ stat: (path, options) => forgiving("invalid", () => good.stat(path, options), notWhatItIs) }),
  },
  "input: a command without program, with NUL, or with a bad variable is invalid": {
    what: "a malformed command is some error",
    sandbox: (good) => ({ spawn: (asked) => forgiving("invalid", () => good.spawn(asked), notWhatItIs) }),
  },
  "input: an unknown user is invalid or denied": {
    what: "the user is ignored",
    spawn: ({ user: _user, ...asked }) => asked,
  },
  "input: files as root are denied unless the spec allows it": {
    what: "the user is ignored for files",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    sandbox: (good) => ({ stat: (path) => good.stat(path) }),
  },
  "input: negative offsets, lengths and bounds are invalid": {
    what: "offset and length are ignored",
    sandbox: (good) => ({ readFile: (path) => good.readFile(path) }),
  },
  "input: a template the runtime does not have is refused": {
    what: "the template is ignored",
    spec: (asked) => ({ ...asked, template: anyBase.template }),
  },
  "input: a network policy that cannot be enforced is refused": {
    what: "the network policy is ignored",
    spec: (asked) => ({ ...asked, network: { mode: "none" } }),
  },
  "life: the runtime's capabilities are well-formed and the probe finds it usable": {
    what: "the probe always fails",
    runtime: () => ({ probe: async () => ({ usable: false, startMs: null, findings: [] }) }),
  },
  "life: info is well-formed and says what was asked for": { what: "labels are forgotten", spec: (asked) => ({ ...asked, labels: {} }) },
  "life: sandboxes are apart from each other": {
    what: "there is only ever one sandbox",
    runtime(good) {
      let only: Promise<OwnedSandbox> | null = null;
      return {
        create(spec, options) {
          only ??= good.create(spec, options);
          return only;
        },
      };
    },
  },
  "life: ping answers and is heard": { what: "nobody notes what was heard", sandbox: () => ({ lastHeardMs: () => 0 }) },
  "life: stats are well-formed, count processes, and processor time grows with work": {
    what: "nothing is counted",
    sandbox: (good) => ({ stats: async () => ({ ...(await good.stats()), processes: 0 }) }),
  },
  "life: list has a live sandbox and not a destroyed one": { what: "the list is empty", runtime: () => ({ list: async () => [] }) },
  "life: destroy is idempotent, ends what runs, and closed says so": {
    what: "nobody is told of the end",
    sandbox: () => ({ closed: new Promise(() => {}) }),
  },
  "life: two destroys at once both resolve": {
    what: "a second destroy fails",
    sandbox(good) {
      let begun = false;
      return {
        async destroy() {
          if (begun) notWhatItIs();
          begun = true;
          await good.destroy();
        },
      };
    },
  },
  "life: everything on a destroyed sandbox is lost": {
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
  "life: leaving the scope destroys": { what: "leaving the scope does nothing", sandbox: () => ({ [Symbol.asyncDispose]: noop }) },
  "life: a kept sandbox is released, found in the list, opened again with its files and processes": {
    what: "opening makes a new sandbox",
    capabilities: (good) => ({ ...good, reattach: true }),
    runtime: (good) => ({ open: () => good.create({ ...anyBase, keep: true }) }),
  },
  "life: release without keep is invalid": {
    what: "anything can be released",
    sandbox: (good) => ({ release: () => forgiving("invalid", () => good.release(), noop) }),
  },
  "life: a handle that is detached leaves the sandbox and its other handles as they were": {
    what: "detaching destroys",
    sandbox: (good) => ({ detach: () => good.destroy() }),
  },
  "life: opening what is not there is not_found": {
    what: "opening what is not there makes it",
    runtime: (good) => ({
      open: (id) =>
        forgiving(
          "not_found",
          () => good.open(id),
          () => good.create(anyBase),
        ),
    }),
  },
  "life: an aborted create is cancelled and leaves nothing": {
    what: "the signal is ignored",
    runtime: (good) => ({ create: (spec) => good.create(spec) }),
  },
  "life: sweep leaves the living alone": {
    what: "sweeping removes everything",
    runtime: (good) => ({
      async sweep() {
        const all = await good.list();
        for (const { id } of all) await (await good.open(id)).destroy();
        return all.map(({ id }) => id);
      },
    }),
  },
  "life: a failed create leaves nothing": { what: "a missing workspace is left out", spec: emptyWorkspace },
  "workspace: an overlay shows the folder and never changes it": {
    what: "an overlay is the folder itself",
    capabilities: (good) => ({ ...good, workspaceAccess: ["overlay", "rw"] }),
    spec: readWrite,
  },
  "workspace: read-write changes the folder, and what was made belongs to its owner": {
    what: "the folder is left out",
    capabilities: (good) => ({ ...good, workspaceAccess: ["overlay", "rw"] }),
    spec: emptyWorkspace,
  },
  "workspace: read-only is readable, and every change is denied": {
    what: "read-only is read-write",
    capabilities: (good) => ({ ...good, workspaceAccess: ["ro", "rw"] }),
    spec: readWrite,
  },
  "workspace: overlay is refused as unsupported where it cannot be had": ignoredAccess("overlay"),
  "workspace: rw is refused as unsupported where it cannot be had": ignoredAccess("rw"),
  "workspace: ro is refused as unsupported where it cannot be had": ignoredAccess("ro"),
  "workspace: an empty one is empty, writable and gone with the sandbox": {
    what: "an empty workspace has something in it",
    runtime: (good) => ({
      async create(spec, options) {
        const sandbox = await good.create(spec, options);
        await sandbox.writeFile("/workspace/left-over", Buffer.from(""));
        return sandbox;
      },
    }),
  },
  "workspace: a layer keeps its changes, and the home folder, for the next sandbox alone": {
    what: "the layer is left out",
    capabilities: (good) => ({ ...good, workspaceLayer: true }),
    spec: emptyWorkspace,
  },
  "workspace: a file instead of a folder is invalid": { what: "what is no folder is left out", spec: emptyWorkspace },
  "mount: read-only is readable at its path, and every change is denied": {
    what: "read-only is an overlay",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "ro"] }),
    spec: mountedAs("overlay"),
  },
  "mount: read-write changes the folder, and what was made belongs to its owner": {
    what: "read-write is an overlay",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "rw"] }),
    spec: mountedAs("overlay"),
  },
  "mount: an overlay's changes are never outside, and go with the sandbox": {
    what: "an overlay is the folder itself",
    capabilities: (good) => ({ ...good, mounts: ["overlay", "rw"] }),
    spec: mountedAs("rw"),
  },
  "mount: overlay is refused as unsupported where it cannot be had": ignoredMount("overlay"),
  "mount: rw is refused as unsupported where it cannot be had": ignoredMount("rw"),
  "mount: ro is refused as unsupported where it cannot be had": ignoredMount("ro"),
  "mount: places that a sandbox has for itself, and one place for two folders, are invalid": {
    what: "mounts are left out",
    spec: noMounts,
  },
  "paths: read-only ones cannot be changed, denied ones show nothing": {
    what: "paths are promised and not protected",
    capabilities: (good) => ({ ...good, paths: true }),
    spec: noPaths,
  },
  "paths: refused as unsupported where they cannot be had": {
    what: "paths are ignored",
    capabilities: (good) => ({ ...good, paths: false }),
    spec: noPaths,
  },
  "pause: nothing makes progress until resume": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: true }),
    sandbox: pretendedPause,
  },
  "pause: everything but the life of the sandbox is a conflict meanwhile": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: true }),
    sandbox: pretendedPause,
  },
  "pause: pausing twice and resuming twice is no error, and a paused sandbox can be destroyed": {
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
  "pause: refused as unsupported where it cannot be had": {
    what: "pausing does nothing",
    capabilities: (good) => ({ ...good, pause: false }),
    sandbox: () => ({ pause: noop }),
  },
  "fork: has the files as they are, and nothing done later on either side": {
    what: "a fork is the sandbox itself",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: (good) => ({ fork: async () => good }),
  },
  "fork: has none of the processes, and the first's go on": {
    what: "a fork is the sandbox itself",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: (good) => ({ fork: async () => good }),
  },
  "snapshot: is listed with its name, and a sandbox starts from it after the first is gone": {
    what: "snapshots are not kept",
    capabilities: (good) => ({ ...good, snapshot: true }),
    sandbox: () => ({ snapshot: async () => "sn_aaaaaaaaaaaa" }),
    runtime: () => ({ snapshots: async () => [], removeSnapshot: noop }),
  },
  "snapshot: refused as unsupported where it cannot be had": {
    what: "a snapshot is pretended",
    capabilities: (good) => ({ ...good, snapshot: false }),
    sandbox: () => ({ snapshot: async () => "sn_aaaaaaaaaaaa" }),
  },
};
