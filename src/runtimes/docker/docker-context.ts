import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { RuntimeContext } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Store } from "../../sandbox/store.ts";
import type { AccountFiles } from "./accounts.ts";
import { type Engine, engineAt } from "./engine.ts";
import type { EngineImage } from "./image.ts";

/** What a fork starts from: an image created for it, which already contains the workspace. */
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
  /** How long an image may exist before the record that explains it. */
  freshImageSeconds: number;
  /**
   * Account files by image id. The content of an id never changes, and reading the files from the engine takes longer
   * than starting a sandbox.
   */
  accountFiles: Map<string, AccountFiles>;
  /** Creates a sandbox from another's files. A sandbox's wall calls it. */
  createFork(config: SandboxConfig, source: ForkSource): Promise<OwnedSandbox>;
  /** The engine for new sandboxes. Throws `unavailable`. */
  engine(): Promise<Engine>;
  /** The engine that a sandbox runs in, which may not be the one for new sandboxes. */
  engineFor(socketPath: string): Promise<Engine>;
}

/** Keeps one connection object per socket. */
export function createEngineCache(find: () => Promise<Engine>): Pick<DockerContext, "engine" | "engineFor"> {
  const bySocket = new Map<string, Promise<Engine>>();
  let chosen: Promise<Engine> | undefined;
  return {
    async engine() {
      chosen ??= find().catch((error) => {
        // The engine may start at any time.
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
