import type { OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption } from "../options/runtime-options.ts";

/** What a Debian system consists of, for images and templates. */
export const debianOptions: readonly OptionDefinition[] = [
  { name: "suite", value: "SUITE", summary: "Debian release, such as bookworm (default: this machine's, else stable)" },
  { name: "include", value: "PACKAGES", repeat: true, summary: "Packages to install, comma-separated" },
  {
    name: "variant",
    value: "NAME",
    summary: "Size of the base system (default: minbase, the smallest with apt)",
    choices: ["extract", "custom", "essential", "apt", "minbase", "buildd", "important", "standard"],
  },
  { name: "mirror", value: "URL", summary: "Use this archive instead of Debian's: a URL or a sources.list line" },
];

const commands = () => import("./image-commands.ts");

export const imageCommands = defineCommands([
  {
    path: ["image", "build"],
    summary: "Build an image for sandboxes to start from",
    details: [
      "Builds a Debian system with mmdebstrap, from Debian's archive, and stores it under a name for --image.",
      "Replaces an image of the same name. Needs no root.",
    ].join("\n"),
    options: [{ name: "name", value: "NAME", summary: "Image name (default: debian)" }, ...debianOptions, jsonOption],
    arguments: [{ name: "DISTRIBUTION", summary: "debian" }],
    examples: [
      ["caisson image build debian --include python3,postgresql --name lab", "then: caisson exec --image lab -- COMMAND"],
      "caisson image build debian --suite trixie --name trixie",
    ],
    load: async () => (await commands()).buildImage,
  },
  {
    path: ["image", "ls"],
    summary: "List images that were built here",
    examples: ["caisson image ls"],
    load: async () => (await commands()).listImages,
  },
  {
    path: ["image", "show"],
    summary: "Show one image: its system, packages, size and digest",
    arguments: [{ name: "NAME", summary: "an image's name, see `caisson image ls`" }],
    examples: ["caisson image show lab --json"],
    load: async () => (await commands()).showImage,
  },
  {
    path: ["image", "rm"],
    summary: "Remove images that were built here",
    arguments: [{ name: "NAME", summary: "an image's name, see `caisson image ls`", repeat: true }],
    examples: ["caisson image rm lab"],
    load: async () => (await commands()).removeImages,
  },
]);
