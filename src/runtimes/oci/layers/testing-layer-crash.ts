import { createCrashpoint } from "../../../lib/crashpoint.ts";
import { defined } from "../../../lib/defined.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";
import { guestPath, settings } from "../testing-oci.ts";

/** What a process does to the layer store, and where it dies. */
export interface LayerWork {
  stateDir: string;
  what: "take" | "restore" | "fork" | "removePoint" | "removeLayer" | "snapshot" | "forkSandbox" | "removeSnapshot" | "sweep";
  layer: string;
  /** Another layer, a point or a snapshot. */
  other: string;
  sandbox: string;
  crashAt?: string;
}

export async function work(runtime: OciRuntime, { what, layer, other, sandbox }: LayerWork): Promise<void> {
  const { points } = runtime;
  if (points === undefined) throw new Error("the runtime has no points");
  const bytesMax = 1024 ** 3;
  const open = async () => await runtime.open(sandbox as never);
  const works: Record<LayerWork["what"], () => Promise<unknown>> = {
    take: () => points.take(layer, { ...(sandbox !== "" && { sandbox: sandbox as never }), bytesMax }),
    restore: () => points.restore(layer, other),
    fork: () => points.fork(layer, other, { bytesMax }),
    removePoint: () => points.remove(layer, other),
    removeLayer: async () => await runtime.removeLayer?.(layer),
    snapshot: async () => await (await open()).snapshot({ name: other }),
    forkSandbox: async () => await (await open()).fork(),
    removeSnapshot: () => runtime.removeSnapshot(other as never),
    sweep: () => runtime.sweep(),
  };
  await works[what]();
}

const [, , request] = process.argv;
if (import.meta.main && request !== undefined) {
  const layerWork = JSON.parse(request) as LayerWork;
  const crashpoint = createCrashpoint({ ...defined({ at: layerWork.crashAt }), onPoint: (name) => process.stdout.write(`${name}\n`) });
  await work(createOciRuntime({ stateDir: layerWork.stateDir, guestPath, crashpoint }, settings), layerWork);
  // Its connections to sandboxes would keep it alive.
  process.exit();
}
