/**
 * One file of the bundle, with modules that startup loads together: finding, reading and checking a file costs more
 * than running it. `modules` lists only the modules that are loaded by name, relative to `src`. The file also contains
 * their imports, unless an earlier file has them. The compiled form of large files is stored (scripts/kept-script.ts).
 * test/startup.test.ts checks what the files of `exec` must not contain, and test/e2e/launcher.e2e.test.ts checks that
 * `exec` loads no other files.
 */
export interface StartupFile {
  name: string;
  modules: readonly string[];
  large: boolean;
  /**
   * When `exec` loads the file. `here`: if it does the work itself. `in a folder`: if it does so in a folder.
   * `through a station`: if a station does the work. `no`: only other commands load the file.
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
  // Needed if the user configured something, or set an option of the sandbox.
  { name: "configuration", large: false, exec: "no", modules: ["compose/check-config.ts"] },
  { name: "sandbox-options", large: false, exec: "no", modules: ["cli/options/parse-sandbox-options.ts"] },
  // Needed if there is a folder to work in.
  { name: "folder-command", large: false, exec: "in a folder", modules: ["station/sandboxes/guard-folders.ts"] },
  // Needed if the command changed something in that folder.
  { name: "folder-changes", large: false, exec: "in a folder", modules: ["workspace/count-changed.ts"] },
  // Commands about runs and sessions: those that go through a station, and those that do their work themselves.
  { name: "run-contract", large: true, exec: "no", modules: ["contract/run/run-verbs.ts", "contract/event/handlers.ts"] },
  {
    name: "local-station",
    large: true,
    exec: "no",
    modules: ["compose/local-parts.ts", "station/runs/new-run.ts", "log/sqlite/log.ts"],
  },
  // An unchanged template is built again in a moment.
  { name: "template-build", large: true, exec: "no", modules: ["cli/templates/build-command.ts", "station/templates/local-templates.ts"] },
];
