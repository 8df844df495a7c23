import type { CommandSpec } from "../command.ts";
import { jsonOption, ociRuntimeOption, runtimeOption } from "../options/runtime-options.ts";

export const machineCommands: readonly CommandSpec[] = [
  {
    path: ["doctor"],
    place: "machine",
    summary: "Check what works on this machine, and how to fix what does not",
    details:
      "Exit code: 0 when a sandbox can be isolated here; with --model, when the model answers, too; with --attack, when every claim held;\nwith --conformance, when every test passed.",
    options: [
      jsonOption,
      { ...runtimeOption, summary: "Check only this runtime", choices: ["oci", "docker", "host"] },
      ociRuntimeOption,
      { name: "image", value: "REF", summary: "With --attack or --conformance: the image to start from" },
      { name: "model", value: "NAME", summary: "Ask this model for one word, to check its key and address" },
      { name: "attack", summary: "Run the attack suite on the runtime that would be used, or on a station" },
      { name: "report", value: "FILE", summary: "With --attack: write the signed report there" },
      { name: "conformance", summary: "Run the conformance suite on the runtime that would be used" },
      { name: "for", value: "NEEDS", summary: "Which runtime fits: comma-separated, of sensitive, offline, preview, image, language=NAME" },
    ],
    arguments: [{ name: "SUBJECT", summary: "with --attack: sandboxes (default), or station", optional: true }],
    examples: [
      ["caisson doctor", ""],
      ["caisson doctor --attack station", "start a separate station, and attack it"],
      ["caisson doctor --model anthropic/claude-sonnet-4-5", "is the key set, and does it work?"],
      ["caisson doctor --attack --runtime docker --json", "a report with observed, declared and unverifiable claims"],
      ["caisson doctor --for sensitive,offline", ""],
    ],
    load: () => import("./doctor.ts"),
  },
  {
    path: ["model", "ls"],
    summary: "List the models that your keys allow, and the default",
    details:
      "The default is --model, then CAISSON_MODEL, then models.default of the config file, then the agent's own model.\nWithout any of them, and with the key of one provider set, it is the first model of that provider.",
    options: [jsonOption],
    arguments: [],
    examples: [["ANTHROPIC_API_KEY=… caisson model ls", ""]],
    load: async () => ({ run: (await import("./model-list.ts")).listModels }),
  },
  {
    path: ["demo"],
    place: "machine",
    summary: "Take a tour: what a sandbox can do, cannot reach, and costs",
    options: [
      runtimeOption,
      ociRuntimeOption,
      { name: "model", value: "NAME", summary: "A real model for the agent at the end, instead of the scripted one" },
      { name: "spec", summary: "Another tour: a spec, from an idea to work that can be applied" },
    ],
    arguments: [],
    examples: [
      ["caisson demo", ""],
      ["caisson demo --spec", "from an idea to work that can be applied, on a scripted model"],
    ],
    load: () => import("../demo/demo.ts"),
  },
  {
    path: ["config"],
    place: "here",
    summary: "Show the settings in force, and where they come from",
    details: "An option wins over a variable of the environment, that over the config file, that over the default.",
    options: [
      { name: "schema", summary: "Print the JSON schema of the config file instead" },
      { name: "runtime", value: "NAME", summary: "Show the settings as if this option were given" },
      { name: "image", value: "REF", summary: "Show the settings as if this option were given" },
      { name: "model", value: "NAME", summary: "Show the settings as if this option were given" },
      jsonOption,
    ],
    arguments: [],
    examples: [
      ["CAISSON_RUNTIME=docker caisson config", ""],
      ["caisson config --schema > config.schema.json", "for your editor"],
    ],
    load: () => import("./config-show.ts"),
  },
];
