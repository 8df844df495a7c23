import { runtimeNames } from "../../contract/sandbox/runtime-names.ts";
import { defineCommands } from "../define-command.ts";
import { jsonOption, ociRuntimeOption, runtimeOption } from "../options/runtime-options.ts";

export const machineCommands = defineCommands([
  {
    path: ["doctor"],
    place: "machine",
    summary: "Check what works on this machine, and how to fix the rest",
    details:
      "Exit code: 0 if this machine can isolate a sandbox and, with --model, the model answers; with --attack, if every claim held;\nwith --conformance, if every test passed.",
    options: [
      jsonOption,
      { ...runtimeOption, summary: "Check only this runtime", choices: runtimeNames },
      ociRuntimeOption,
      { name: "image", value: "REF", summary: "With --attack or --conformance: start from this image" },
      { name: "model", value: "NAME", summary: "Send this model a one-word prompt, to check its key and URL" },
      { name: "attack", summary: "Run the attack suite on the runtime in use, or on a station" },
      { name: "report", value: "FILE", summary: "With --attack: write the signed report to this file" },
      { name: "conformance", summary: "Run the conformance suite on the runtime in use" },
      {
        name: "for",
        value: "NEEDS",
        summary: "Recommend a runtime for comma-separated needs: sensitive, offline, preview, image, language=NAME",
      },
    ],
    arguments: [{ name: "SUBJECT", summary: "with --attack: sandboxes (default), or station", optional: true }],
    examples: [
      "caisson doctor",
      ["caisson doctor --attack station", "start a separate station and attack it"],
      ["caisson doctor --model anthropic/claude-sonnet-4-5", "check the key and the connection"],
      ["caisson doctor --attack --runtime docker --json", "a report with observed, declared and unverifiable claims"],
      "caisson doctor --for sensitive,offline",
    ],
    load: async () => (await import("./doctor.ts")).runDoctor,
  },
  {
    path: ["model", "ls"],
    summary: "List the models that your keys allow, and the default",
    details:
      "The default is --model, then CAISSON_MODEL, then models.default in the config file, then the agent's own model.\nIf none is set and you have a key for exactly one provider, it is that provider's first model.",
    examples: ["ANTHROPIC_API_KEY=… caisson model ls"],
    load: async () => (await import("./model-list.ts")).listModels,
  },
  {
    path: ["demo"],
    place: "machine",
    summary: "Take a tour: what a sandbox can do, what it cannot reach, and what it costs",
    options: [
      runtimeOption,
      ociRuntimeOption,
      { name: "model", value: "NAME", summary: "Use this model for the agent at the end, instead of the scripted one" },
      { name: "spec", summary: "Take the other tour: a spec, from an idea to changes you can apply" },
    ],
    examples: ["caisson demo", ["caisson demo --spec", "on a scripted model"]],
    load: async () => (await import("../demo/demo.ts")).runDemo,
  },
  {
    path: ["config"],
    place: "here",
    summary: "Show the settings in effect, and where each comes from",
    details: "Options override environment variables, which override the config file, which overrides the defaults.",
    options: [
      { name: "schema", summary: "Print the JSON schema of the config file instead" },
      { name: "runtime", value: "NAME", summary: "Show the settings as if this option were set" },
      { name: "image", value: "REF", summary: "Show the settings as if this option were set" },
      { name: "model", value: "NAME", summary: "Show the settings as if this option were set" },
      jsonOption,
    ],
    examples: ["CAISSON_RUNTIME=docker caisson config", ["caisson config --schema > config.schema.json", "for your editor"]],
    load: async () => (await import("./config-show.ts")).showConfig,
  },
]);
