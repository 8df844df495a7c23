import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxSpec } from "../../contract/sandbox.ts";
import type { RuntimeContext } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Store } from "../../sandbox/store.ts";
import type { AccountFiles } from "./accounts.ts";
import { type Engine, engineAt } from "./engine.ts";
import type { EngineImage } from "./image.ts";

/** What a fork starts from: the image made for it, which holds the workspace already. */
export interface ForkSource {
  id: SandboxId;
  engine: Engine;
  image: EngineImage;
  /** The image's name. */
  reference: string;
}

/** What the parts of this runtime share. */
export interface DockerContext {
  context: RuntimeContext;
  store: Store;
  stateLabel: string;
  defaultImage: string | null;
  cgroupParent: string | null;
  /**
   * Account files by image id. An image never changes under its id, and asking the engine for them takes longer than
   * starting a sandbox.
   */
  accountFiles: Map<string, AccountFiles>;
  /** Makes a sandbox from another's files; a sandbox's wall asks for it. */
  createFork(spec: SandboxSpec, source: ForkSource): Promise<OwnedSandbox>;
  /** The engine for new sandboxes. Throws `unavailable`. */
  engine(): Promise<Engine>;
  /** The engine a sandbox lives in, which need not be the one for new ones. */
  engineFor(socketPath: string): Promise<Engine>;
}

/** One connection object for each socket. */
export function createEngineCache(find: () => Promise<Engine>): Pick<DockerContext, "engine" | "engineFor"> {
  const bySocket = new Map<string, Promise<Engine>>();
  let chosen: Promise<Engine> | undefined;
  return {
    async engine() {
      chosen ??= find().catch((error) => {
        // It may be started any moment.
        chosen = undefined;
        throw error;
      });
      const engine = await chosen;
      bySocket.set(engine.socketPath, chosen);
      return engine;
    },
    engineFor(socketPath) {
      const known = bySocket.get(socketPath) ?? engineAt(socketPath);
      bySocket.set(socketPath, known);
      return known;
    },
  };
}
