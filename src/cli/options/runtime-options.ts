import { isolatingRuntimes, runtimeNames } from "../../contract/sandbox/runtime-names.ts";
import { startFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { OptionDefinition } from "../command.ts";

const chosenFrom = (names: readonly string[]): OptionDefinition => ({
  name: "runtime",
  value: "NAME",
  summary: `Use this runtime: auto (default), ${names.join(", ")}`,
  choices: ["auto", ...names],
});

export const runtimeOption = chosenFrom(runtimeNames);
/** For agents: completion does not offer the host. */
export const isolatingRuntimeOption = chosenFrom(isolatingRuntimes);
export const [ociRuntimeOption] = startFieldOptions.ociRuntime.options;
export const jsonOption: OptionDefinition = { name: "json", summary: "Print JSON" };
