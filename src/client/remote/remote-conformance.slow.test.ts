import { openServer } from "../../../test/support/api-station.ts";
import { stationAt, stationAtSocket } from "../../compose/remote.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import { conformancePrograms } from "../../runtimes/fake/conformance-programs.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { describeRuntime } from "../../suites/conformance/describe-runtime.ts";
import { conformanceTests } from "../../suites/conformance/suite.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { Station } from "../../verbs/station.ts";

/** Runs the sandbox conformance tests on handles over a connection. */
const server = () => openServer({ programs: conformancePrograms, bounds: { sandboxesMax: 100 } });
type Server = Awaited<ReturnType<typeof server>>;

const ways: Record<string, (served: Server) => Promise<Station>> = {
  "the socket": async ({ server: { socketPath } }) => stationAtSocket(socketPath),
  HTTP: async ({ server: { status }, station }) => {
    const { token } = await station.tokens.create({ name: "conformance", scope: "admin" });
    return await stationAt({ kind: "elsewhere", url: status.url, context: null }, { token });
  },
};

/** Where a remote handle differs, and why. */
const except = [
  ...conformanceTests
    .filter(({ name }) => name.startsWith("serve: "))
    .map(({ name }) => ({ test: name, reason: "what serves a sandbox's network is the station, never a caller" })),
  {
    test: "tar: exclude omits entries, bytesMax stops with too_large",
    reason: "an answer that has begun can no longer say why it ends: its reader sees that it broke off",
  },
  {
    test: "attach: unread output is complete even after the process ended",
    reason: "what was on its way to a reader that let go went with it, unless the process keeps its last output",
  },
  {
    test: "life: detaching a handle leaves the sandbox and its other handles alone",
    reason: "the sandbox does; the handle says that it was let go of (gone), where one of a runtime says lost",
  },
];

for (const [way, reach] of Object.entries(ways)) {
  describeRuntime(
    `sandboxes reached by ${way}`,
    async () => {
      const opened = await server();
      const station = await reach(opened);
      const close = async () => {
        await station[Symbol.asyncDispose]();
        await opened.close();
      };
      return { runtime: runtimeOver(station, opened.fake), close };
    },
    { except },
  );
}

/** Adapts the station's verbs to a runtime, which can do only what the verbs do. */
function runtimeOver({ sandboxes }: Station, fake: Runtime): Runtime {
  const list = async () => (await sandboxes.list({ sweep: false })).sandboxes;
  return {
    name: fake.name,
    capabilities: () => fake.capabilities(),
    probe: () => fake.probe(),
    create: async (config, options) => owned(await sandboxes.create({ spec: config, runtime: fake.name }, options), sandboxes),
    open: async (id) => owned(await sandboxes.hold(id), sandboxes),
    list,
    async sweep() {
      const before = await list();
      await sandboxes.sweep();
      const left = new Set((await list()).map(({ id }) => id));
      return before.map(({ id }) => id).filter((id) => !left.has(id));
    },
    discard: (id) => sandboxes.remove(id),
    snapshots: async () =>
      (await sandboxes.snapshots()).snapshots.map(({ workspaceFolder, ...rest }) => ({ ...rest, ...defined({ workspaceFolder }) })),
    removeSnapshot: (id) => sandboxes.removeSnapshot(id),
    async [Symbol.asyncDispose]() {},
  };
}

function owned(held: HeldSandbox, sandboxes: Station["sandboxes"]): OwnedSandbox {
  const { id } = held;
  let heardMs = Date.now();
  let isDetached = false;
  const no = async (): Promise<never> => {
    throw new CaissonError("unsupported", "a station does not let its callers do this");
  };
  return {
    ...held,
    network: null,
    fence: no,
    async ping() {
      const fromMs = performance.now();
      await held.processes();
      heardMs = Date.now();
      return { roundTripMs: performance.now() - fromMs };
    },
    lastHeardMs: () => heardMs,
    async stats() {
      // `stats` finds its sandbox by id. This call makes the handle report `lost` first if the sandbox is removed.
      await held.processes();
      return await sandboxes.stats(id);
    },
    serve: no,
    serveTransparent: no,
    pause: () => sandboxes.pause(id),
    resume: () => sandboxes.resume(id),
    snapshot: async (options) => (await sandboxes.snapshot(id, options)).id,
    fork: async () => owned(await sandboxes.hold((await sandboxes.fork(id)).id), sandboxes),
    async release() {
      if (!held.info.keep) throw new CaissonError("invalid", "a station removes what is let go of and not kept");
      await held.release();
    },
    async detach() {
      isDetached = true;
      await held.release();
    },
    destroy: () => (isDetached ? sandboxes.remove(id) : held.destroy()),
  };
}
