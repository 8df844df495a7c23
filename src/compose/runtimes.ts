import type { Config } from "../contract/config/config.ts";
import type { ImageFetch } from "../contract/image/image-fetch.ts";
import type { BuiltInRuntime } from "../contract/sandbox/runtime-names.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { defined } from "../lib/defined.ts";
import type { NetworkHost, NetworkSettings } from "../network/network-host.ts";
import { redactedEvents } from "../network/redacted-events.ts";
import type { OciOptions } from "../runtimes/oci/runtime.ts";
import { createResolver, type Resolver } from "../sandbox/resolver.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createRuntimeSet, type RuntimeFactory, type RuntimeSet } from "../sandbox/runtime-set.ts";
import { crashpointFrom } from "./crash-points.ts";
import type { Environment } from "./environment.ts";
import { readGitIdentity } from "./git-identity.ts";

export interface RuntimesOptions {
  environment: Environment;
  guestPath: string;
  /** The command line that starts this program as a network's keeper. */
  program: readonly [string, ...string[]];
  settings?: Partial<Pick<Config, "ociRuntime" | "criu" | "dockerImage" | "fallbackRuntime" | "models" | "station">> & {
    network?: Partial<NetworkSettings> & { privateFetchHosts?: readonly string[] };
  };
  pool?: NonNullable<OciOptions["pool"]>;
  /** The command line of this program, for hints. */
  command?: string;
  /** If absent, no events are created. */
  onEvent?: (event: SandboxEvent) => void;
  /** Called with warnings for the user. */
  warn?: (text: string) => void;
}

export interface ComposedRuntimes extends AsyncDisposable {
  readonly runtimes: RuntimeSet;
  readonly resolver: Resolver;
  /** Adds networks to a runtime that was created elsewhere. */
  withNetwork(runtime: Runtime): Promise<Runtime>;
}

/** Creates every runtime of this machine; each loads on first use. */
export function composeRuntimes(options: RuntimesOptions): ComposedRuntimes {
  const { environment, guestPath, settings = {}, onEvent } = options;
  const { stateDir, home, path, variables } = environment;
  const redactors: NetworkHost["redactors"] = new Map();
  const withNetwork = async (runtime: Runtime) => {
    const [{ addNetworking }, { composeNetwork }] = await Promise.all([
      import("../network/sandbox-network/networked-runtime.ts"),
      import("./network.ts"),
    ]);
    const host = composeNetwork({
      stateDir,
      program: options.program,
      env: variables,
      settings: { caFiles: [], registries: {}, gateway: {}, ...settings.network },
      ownPrices: settings.models?.prices ?? {},
      redactors,
      ...defined({ warn: options.warn, onEvent }),
    });
    return addNetworking(runtime, host);
  };
  const fetchImageFor = async (request: ImageFetch) => {
    const [{ fetchImageFor: fetch }, { fetchPolicyOf }] = await Promise.all([
      import("../network/outbound/fetch-image.ts"),
      import("./fetching.ts"),
    ]);
    await fetch(request, fetchPolicyOf({ caFiles: [], privateFetchHosts: [], ...settings.network }));
  };
  const { XDG_RUNTIME_DIR: runtimeDir, DBUS_SESSION_BUS_ADDRESS: busAddress, DOCKER_HOST: dockerHost } = variables;
  const runtimes = createRuntimeSet({
    context: {
      stateDir,
      guestPath,
      gitIdentity: () => readGitIdentity({ home, variables }),
      crashpoint: crashpointFrom((name) => variables[name]),
      ...defined({ onEvent: onEvent && redactedEvents(onEvent, redactors) }),
    },
    factories: {
      oci: async (context) => {
        const [{ createOciRuntime }, { createDiskShares }] = await Promise.all([
          import("../runtimes/oci/runtime.ts"),
          import("../sandbox/disk-shares.ts"),
        ]);
        const { diskReserveBytes, diskBytesPerOwnerMax } = settings.station ?? {};
        const disk = createDiskShares({ stateDir, reserveBytes: diskReserveBytes, bytesPerOwnerMax: diskBytesPerOwnerMax });
        const session = defined({ runtimeDir, busAddress });
        const own = defined({ command: options.command, ociRuntime: settings.ociRuntime, criu: settings.criu, pool: options.pool });
        return withNetwork(createOciRuntime({ ...context, disk }, { home, path, session, fetchImageFor, ...own }));
      },
      docker: async (context) => {
        const { createDockerRuntime } = await import("../runtimes/docker/runtime.ts");
        return withNetwork(createDockerRuntime(context, defined({ host: dockerHost, runtimeDir, defaultImage: settings.dockerImage })));
      },
      host: async (context) => withNetwork((await import("../runtimes/host/runtime.ts")).createHostRuntime(context)),
    } satisfies Record<BuiltInRuntime, RuntimeFactory>,
  });
  const resolver = createResolver({ runtimes, stateDir, guestPath, path, ...defined({ fallbackRuntime: settings.fallbackRuntime }) });
  return { runtimes, resolver, withNetwork, [Symbol.asyncDispose]: () => runtimes[Symbol.asyncDispose]() };
}
