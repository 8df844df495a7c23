import { isolatingRuntimes, runtimeNames } from "../../contract/sandbox/runtime-names.ts";
import { startFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { OptionSpec } from "../command.ts";

const chosenFrom = (names: readonly string[]): OptionSpec => ({
  name: "runtime",
  value: "NAME",
  summary: `Use this runtime: auto (default), ${names.join(", ")}`,
  choices: ["auto", ...names],
});

export const runtimeOption = chosenFrom(runtimeNames);
/** For agents: completion does not offer the host. */
export const isolatingRuntimeOption = chosenFrom(isolatingRuntimes);
export const [ociRuntimeOption] = startFieldOptions.ociRuntime.options;
export const jsonOption: OptionSpec = { name: "json", summary: "Print JSON" };
