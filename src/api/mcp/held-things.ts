import { CaissonError } from "../../contract/error.ts";
import type { McpBounds } from "../../contract/mcp-bounds.ts";
import type { PreviewView } from "../../contract/network-verbs.ts";
import type { SandboxInfo } from "../../contract/sandbox.ts";
import type { OpenedPort } from "../../station/networks/verbs.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { McpStation } from "./mcp-context.ts";

const SANDBOXES_MAX = 50;
const PREVIEWS_MAX = 50;

/** What one client made: sandboxes that go with it, previews that are open for it, and what it may reach. */
export interface HeldThings extends AsyncDisposable {
  /** Throws `busy` past the limit. */
  checkRoom(): void;
  /** Holds it as long as the client is there; one that is kept, only as its own. */
  takeSandbox(sandbox: HeldSandbox): Promise<void>;
  takeRun(run: string): void;
  takePreview(preview: OpenedPort<PreviewView>): void;
  /** The preview of a port that is open already. */
  preview(sandbox: string, port: number): PreviewView | null;
  /** The sandbox that a name stands for. Throws `not_found`, also for one that the client may not reach. */
  sandbox(name: string): Promise<SandboxInfo>;
  /** The id of a run. Throws `not_found`, also for one that the client may not reach. */
  run(name: string): Promise<string>;
  isReached(id: string): boolean;
  /** It was removed. */
  forget(sandbox: string): Promise<void>;
}

export function createHeldThings({ station, reaches }: { station: McpStation; reaches: McpBounds["reaches"] }): HeldThings {
  const sandboxes = new Map<string, HeldSandbox>();
  const previews = new Map<string, OpenedPort<PreviewView>>();
  const own = new Set<string>();
  const isReached = (id: string) => reaches === "all" || own.has(id);
  const checkReach = (what: "sandbox" | "run", { id, name }: { id: string; name: string }) => {
    if (isReached(id)) return;
    throw new CaissonError("not_found", `this client made no ${what} ${JSON.stringify(name.slice(0, 100))}`, {
      hint: "It reaches only what it made itself; a person can start `caisson mcp --all` to let it reach everything.",
    });
  };
  return {
    isReached,
    checkRoom() {
      if (sandboxes.size < SANDBOXES_MAX) return;
      throw new CaissonError("busy", `this client has ${SANDBOXES_MAX} sandboxes`, { hint: "Remove one with remove_sandbox first." });
    },
    async takeSandbox(sandbox) {
      own.add(sandbox.id);
      if (sandbox.info.keep) return await sandbox.release();
      sandboxes.set(sandbox.id, sandbox);
      void sandbox.closed.then(() => sandboxes.delete(sandbox.id));
    },
    takeRun: (run) => void own.add(run),
    takePreview(preview) {
      const key = `${preview.view.sandbox}:${preview.view.port}`;
      const oldest = previews.size < PREVIEWS_MAX ? undefined : previews.keys().next().value;
      if (oldest !== undefined) {
        void previews.get(oldest)?.close();
        previews.delete(oldest);
      }
      previews.set(key, preview);
      void preview.closed.then(() => previews.get(key) === preview && previews.delete(key));
    },
    preview: (sandbox, port) => previews.get(`${sandbox}:${port}`)?.view ?? null,
    async sandbox(name) {
      const info = await station.sandboxes.get(name);
      checkReach("sandbox", { id: info.id, name });
      return info;
    },
    async run(name) {
      const { run: id } = await station.runs.get(name);
      checkReach("run", { id, name });
      return id;
    },
    async forget(sandbox) {
      const held = sandboxes.get(sandbox);
      sandboxes.delete(sandbox);
      await held?.release();
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([...previews.values()].map((preview) => preview.close()));
      await Promise.allSettled([...sandboxes.values()].map((sandbox) => sandbox.release()));
    },
  };
}
