/**
 * What start-up loads together stands in one file of the bundle each: to find, read and check a file costs more than to run it. Named are the modules
 * that are loaded by name, from `src`; what those import comes with them, unless an earlier file has it. test/startup.test.ts says what must not be in
 * them, and test/e2e/launcher.e2e.test.ts that `caisson exec` loads nothing besides.
 */
export const startupFiles: readonly { name: string; modules: readonly string[] }[] = [
  { name: "package-files", modules: ["package-files.ts"] },
  { name: "command-line", modules: ["cli/dispatch.ts", "cli/terminal/output.ts"] },
  { name: "composition", modules: ["compose/cli.ts", "contract/sandbox.ts"] },
  {
    name: "sandbox-command",
    modules: [
      "cli/sandboxes/exec.ts",
      "station/sandboxes/local-sandboxes.ts",
      "station/sandboxes/sweep-sandboxes.ts",
      "runtimes/oci/runtime.ts",
      "runtimes/oci/template/host-template.ts",
      "network/held/networked-runtime.ts",
      "compose/network.ts",
    ],
  },
];
