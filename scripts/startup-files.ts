/**
 * What start-up loads together stands in one file of the bundle each: to find, read and check a file costs more than to run it. Named are the modules
 * that are loaded by name, from `src`; what those import comes with them, unless an earlier file has it. Of the large ones the compiled form is kept
 * (scripts/kept-script.ts). test/startup.test.ts says what must not be in
 * them, and test/e2e/launcher.e2e.test.ts that `caisson exec` loads nothing besides.
 */
export const startupFiles: readonly { name: string; modules: readonly string[]; large: boolean }[] = [
  { name: "package-files", large: false, modules: ["package-files.ts"] },
  { name: "command-line", large: true, modules: ["cli/dispatch.ts", "cli/terminal/output.ts"] },
  {
    name: "composition",
    large: true,
    modules: ["compose/cli.ts", "compose/verb-kinds.ts", "contract/sandbox.ts", "cli/sandboxes/exec.ts"],
  },
  // A command does its work itself, or has it done by a station: one of the two that follow.
  { name: "remote-command", large: true, modules: ["compose/remote.ts", "compose/callers-station.ts"] },
  {
    name: "sandbox-command",
    large: true,
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
];
