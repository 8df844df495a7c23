/**
 * What start-up loads together stands in one file of the bundle each: to find, read and check a file costs more than to run it. Named are the modules
 * that are loaded by name, from `src`; what those import comes with them, unless an earlier file has it. Of the large ones the compiled form is kept
 * (scripts/kept-script.ts). test/startup.test.ts says what must not be in those of `exec`, and test/e2e/launcher.e2e.test.ts that it loads nothing besides.
 */
export interface StartupFile {
  name: string;
  modules: readonly string[];
  large: boolean;
  /** Which `exec` loads it: each, one that does its work itself, one that has it done by a station; `no`: only other commands do. */
  exec: "always" | "here" | "through a station" | "no";
}

export const startupFiles: readonly StartupFile[] = [
  { name: "package-files", large: false, exec: "always", modules: ["package-files.ts"] },
  { name: "command-line", large: true, exec: "always", modules: ["cli/dispatch.ts", "cli/terminal/output.ts"] },
  {
    name: "composition",
    large: true,
    exec: "always",
    modules: ["compose/cli.ts", "compose/verb-kinds.ts", "cli/sandboxes/exec.ts", "contract/trailing-slashes.ts"],
  },
  { name: "remote-command", large: true, exec: "through a station", modules: ["compose/remote.ts", "compose/callers-station.ts"] },
  // The schemas that nearly every command has a use for that does its work itself.
  { name: "contract", large: true, exec: "here", modules: ["contract/sandbox.ts", "contract/process-identity.ts"] },
  {
    name: "sandbox-command",
    large: true,
    exec: "here",
    modules: [
      "compose/here.ts",
      "station/sandboxes/local-sandboxes.ts",
      "station/sandboxes/sweep-sandboxes.ts",
      "runtimes/oci/runtime.ts",
      "runtimes/oci/template/host-template.ts",
      "network/held/networked-runtime.ts",
      "compose/network.ts",
    ],
  },
  // Where something was configured, or asked of a sandbox.
  { name: "configuration", large: false, exec: "no", modules: ["compose/check-config.ts"] },
  { name: "sandbox-options", large: false, exec: "no", modules: ["cli/options/spec-options.ts"] },
  // Where there is a folder to work in.
  { name: "folder-command", large: false, exec: "no", modules: ["station/sandboxes/guard-workspace.ts", "workspace/wrong-place.ts"] },
  // Commands about runs and sessions: through a station, and those that do their work themselves.
  { name: "run-contract", large: true, exec: "no", modules: ["contract/run-verbs.ts"] },
  {
    name: "local-station",
    large: true,
    exec: "no",
    modules: ["compose/local-station.ts", "station/runs/new-run.ts", "log/sqlite/log.ts"],
  },
];
