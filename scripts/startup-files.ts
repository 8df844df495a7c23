/**
 * Modules that startup loads together are in one file of the bundle each: finding, reading and checking a file costs
 * more than running it. The list names the modules that are loaded by name, from `src`; what those import comes with
 * them, unless an earlier file has it. The compiled form of the large files is stored (scripts/kept-script.ts).
 * test/startup.test.ts checks what must not be in those of `exec`, and test/e2e/launcher.e2e.test.ts that it loads
 * nothing else.
 */
export interface StartupFile {
  name: string;
  modules: readonly string[];
  large: boolean;
  /**
   * When `exec` loads it: always, if it does its work itself, if it does so in a folder, or if a station does it; `no`:
   * only other commands do.
   */
  exec: "always" | "here" | "in a folder" | "through a station" | "no";
}

export const startupFiles: readonly StartupFile[] = [
  { name: "package-files", large: false, exec: "always", modules: ["package-files.ts"] },
  { name: "command-line", large: true, exec: "always", modules: ["cli/dispatch.ts", "cli/terminal/output.ts"] },
  {
    name: "composition",
    large: true,
    exec: "always",
    modules: ["compose/cli.ts", "verbs/verb-facts.ts", "cli/sandboxes/exec.ts", "contract/trailing-slashes.ts"],
  },
  { name: "remote-command", large: true, exec: "through a station", modules: ["compose/remote.ts", "compose/client-side-station.ts"] },
  // The schemas that nearly every command needs if it does its work itself.
  { name: "contract", large: true, exec: "here", modules: ["contract/sandbox/sandbox.ts", "contract/process-identity.ts"] },
  {
    name: "sandbox-command",
    large: true,
    exec: "here",
    modules: [
      "compose/in-process-station.ts",
      "station/sandboxes/local-sandboxes.ts",
      "runtimes/oci/runtime.ts",
      "runtimes/oci/template/host-template.ts",
      "network/sandbox-network/networked-runtime.ts",
      "compose/network.ts",
    ],
  },
  // Needed if something was configured, or requested of a sandbox.
  { name: "configuration", large: false, exec: "no", modules: ["compose/check-config.ts"] },
  { name: "sandbox-options", large: false, exec: "no", modules: ["cli/options/parse-sandbox-options.ts"] },
  // Needed if there is a folder to work in.
  { name: "folder-command", large: false, exec: "in a folder", modules: ["station/sandboxes/guard-folders.ts"] },
  // Needed if the command changed something in it.
  { name: "folder-changes", large: false, exec: "in a folder", modules: ["workspace/count-changed.ts"] },
  // Commands about runs and sessions: those that go through a station, and those that do their work themselves.
  { name: "run-contract", large: true, exec: "no", modules: ["contract/run/run-verbs.ts", "contract/event/handlers.ts"] },
  {
    name: "local-station",
    large: true,
    exec: "no",
    modules: ["compose/local-parts.ts", "station/runs/new-run.ts", "log/sqlite/log.ts"],
  },
];
