import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { PreviewView } from "../../contract/network/network-verbs.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { OpenedPort } from "../../verbs/networks.ts";
import type { McpStation } from "./mcp-context.ts";

const SANDBOXES_MAX = 50;
const PREVIEWS_MAX = 50;

/** What one client created: the sandboxes that end with it, its open previews, and what it may access. */
export interface ClientHolds extends AsyncDisposable {
  /** Throws `busy` above the limit of sandboxes. */
  checkRoom(): void;
  /** Holds the sandbox as long as the client is connected. A kept sandbox is only remembered as the client's. */
  takeSandbox(sandbox: HeldSandbox): Promise<void>;
  takeRun(run: string): void;
  takePreview(preview: OpenedPort<PreviewView>): void;
  /** Returns the open preview of a port, or null. */
  preview(sandbox: string, port: number): PreviewView | null;
  /** Looks a sandbox up. Throws `not_found`, even for one that the client may not access. */
  sandbox(name: string): Promise<SandboxInfo>;
  /** Looks the id of a run up. Throws `not_found`, even for one that the client may not access. */
  run(name: string): Promise<string>;
  isReached(id: string): boolean;
  /** Drops a removed sandbox. */
  forget(sandbox: string): Promise<void>;
}

export function createClientHolds({ station, reaches }: { station: McpStation; reaches: McpBounds["reaches"] }): ClientHolds {
  const sandboxes = new Map<string, HeldSandbox>();
  const previews = new Map<string, OpenedPort<PreviewView>>();
  const own = new Set<string>();
  const isReached = (id: string) => reaches === "all" || own.has(id);
  const checkReach = (what: "sandbox" | "run", { id, name }: { id: string; name: string }) => {
    if (isReached(id)) return;
    throw new CaissonError("not_found", `this client has no ${what} ${JSON.stringify(name.slice(0, 100))}`, {
      hint: "It can only access what it created; a person can start `caisson mcp --all` to let it access everything.",
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
