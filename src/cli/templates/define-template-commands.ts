import { limitFieldOptions, sandboxFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { ArgumentDefinition, OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";
import { ownerOption } from "../options/list-options.ts";
import { jsonOption, runtimeOption } from "../options/runtime-options.ts";
import { debianOptions } from "../sandboxes/define-image-commands.ts";

const commands = () => import("./template-commands.ts");

const templateArgument: ArgumentDefinition = {
  name: "TEMPLATE",
  summary: "a template's name, id or id prefix; see `caisson template ls`",
  completes: ["template"],
};

const hidingOptions = sandboxFieldOptions.mounts.options.filter(({ name }) => name === "hide" || name === "show");
const limitOptions: readonly OptionDefinition[] = [
  ...limitFieldOptions.memoryBytes.options,
  ...limitFieldOptions.cpus.options,
  ...limitFieldOptions.pids.options,
];

const quietOption: OptionDefinition = { name: "quiet", short: "q", summary: "Print only errors and the template's id" };
const jsonLines: OptionDefinition = { name: "json", summary: "Print events as JSON lines" };

const buildOptions: readonly OptionDefinition[] = [
  { name: "name", short: "t", value: "NAME[:TAG]", summary: "Name the template; a name moves from the template that had it" },
  {
    name: "file",
    short: "f",
    value: "FILE",
    summary: "Build from this Dockerfile or devcontainer.json (default: the folder's)",
    completes: ["file"],
  },
  { name: "target", value: "STAGE", summary: "Build this stage instead of the last" },
  { name: "build-arg", value: "K=V", repeat: true, summary: "Set a build argument; K alone copies its value from outside" },
  { name: "base", value: "NAME=IMAGE", repeat: true, summary: "Let FROM NAME mean this image: an OCI layout, an archive or a reference" },
  ...debianOptions,
  ...sandboxFieldOptions.network.options,
  ...hidingOptions,
  ...limitOptions,
  { name: "timeout", value: "TIME", summary: "End a RUN after this long, such as 30m (default 2h)" },
  { name: "no-cache", summary: "Run every step again" },
  quietOption,
  runtimeOption,
  jsonLines,
];

export const templateCommands = defineCommands([
  {
    path: ["template", "build"],
    summary: "Build a template from a Dockerfile or devcontainer.json",
    details: [
      "Runs the instructions in sandboxes, without a daemon. An unchanged step comes from the cache.",
      "FROM takes scratch, host (this machine's system), an image, a template, an OCI layout in the folder, or a stage.",
      "COPY does not see files that .dockerignore names or that look like credentials.",
    ].join("\n"),
    handlesSignals: true,
    options: buildOptions,
    arguments: [
      { name: "PATH", summary: "a folder, a Dockerfile, a devcontainer.json, or debian (default: .)", optional: true, completes: ["file"] },
    ],
    examples: [
      ["caisson template build . --name app --network registries", "then: caisson exec --template app -- COMMAND"],
      ["caisson template build .devcontainer/devcontainer.json --name dev", "image, build, local features and postCreateCommand"],
      ["caisson template build debian --include python3,git --name lab", "a Debian system, as `caisson image build` makes it"],
      "caisson template build -f Dockerfile.test --target test --build-arg VERSION=3 --name app:test",
    ],
    load: async () => (await import("./build-command.ts")).buildTemplate,
  },
  {
    path: ["template", "ls"],
    summary: "List templates",
    options: [ownerOption, jsonOption],
    examples: ["caisson template ls"],
    load: async () => (await commands()).listTemplates,
  },
  {
    path: ["template", "show"],
    summary: "Show one template: its settings, size and what it leaves out",
    arguments: [templateArgument],
    examples: ["caisson template show app --json"],
    load: async () => (await commands()).showTemplate,
  },
  {
    path: ["template", "tag"],
    summary: "Give a template another name",
    arguments: [templateArgument, { name: "NAME", summary: "the new name, NAME or NAME:TAG" }],
    examples: ["caisson template tag app app:v1"],
    load: async () => (await commands()).tagTemplate,
  },
  {
    path: ["template", "rm"],
    summary: "Remove names of templates, or templates by id",
    details: "Their files stay in the build cache until `caisson prune`.",
    arguments: [{ ...templateArgument, repeat: true }],
    examples: ["caisson template rm app"],
    load: async () => (await commands()).removeTemplates,
  },
  {
    path: ["template", "export"],
    summary: "Write a template as an OCI layout",
    details: "A FILE that ends in .tar, or - for standard output, is an archive; anything else a new folder.",
    arguments: [templateArgument, { name: "FILE", summary: "the archive or folder to write", completes: ["file"] }],
    options: [jsonOption],
    examples: [["caisson template export app app.tar", "then: skopeo copy oci-archive:app.tar …"], "caisson template export app ./layout"],
    load: async () => (await import("./export-command.ts")).exportTemplate,
  },
  {
    path: ["template", "import"],
    summary: "Make a template from an image",
    options: [
      { name: "name", short: "t", value: "NAME[:TAG]", summary: "Name the template (required)" },
      quietOption,
      runtimeOption,
      jsonLines,
    ],
    arguments: [{ name: "IMAGE", summary: "an OCI layout, an archive or a name in a registry", completes: ["file"] }],
    examples: ["caisson template import ./layout --name app", "caisson template import oci-archive:app.tar --name app"],
    load: async () => (await import("./build-command.ts")).importTemplate,
  },
]);
