import type { CommandSpec, OptionSpec } from "../command.ts";

const jsonOption: OptionSpec = { name: "json", summary: "Print JSON" };

export const imageCommands: readonly CommandSpec[] = [
  {
    path: ["image", "build"],
    summary: "Build an image to start sandboxes from",
    details: [
      "Builds a Debian system with mmdebstrap, from Debian's own archive, and keeps it under a name for --image.",
      "An image of the same name is replaced. No root needed.",
    ].join("\n"),
    options: [
      { name: "name", value: "NAME", summary: "What it is called (default: debian)" },
      { name: "suite", value: "SUITE", summary: "The release, such as bookworm (default: this machine's own, else stable)" },
      { name: "include", value: "PACKAGES", repeat: true, summary: "Packages to install, comma-separated" },
      {
        name: "variant",
        value: "NAME",
        summary: "How much to start from (default: minbase, the smallest system with apt)",
        choices: ["extract", "custom", "essential", "apt", "minbase", "buildd", "important", "standard"],
      },
      { name: "mirror", value: "URL", summary: "Another archive than Debian's own: an address, or a line of sources.list" },
      jsonOption,
    ],
    arguments: [{ name: "DISTRIBUTION", summary: "debian" }],
    examples: [
      ["caisson image build debian --include python3,postgresql --name lab", "then: caisson exec --image lab -- COMMAND"],
      ["caisson image build debian --suite trixie --name trixie", ""],
    ],
    load: async () => (await import("./image.ts")).build,
  },
  {
    path: ["image", "ls"],
    summary: "List the images that were built here",
    options: [jsonOption],
    arguments: [],
    examples: [["caisson image ls", ""]],
    load: async () => (await import("./image.ts")).list,
  },
  {
    path: ["image", "rm"],
    summary: "Remove images that were built here",
    options: [],
    arguments: [{ name: "NAME", summary: "an image's name, see `caisson image ls`", repeat: true }],
    examples: [["caisson image rm lab", ""]],
    load: async () => (await import("./image.ts")).remove,
  },
];
