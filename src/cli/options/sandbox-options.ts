import { fieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { OptionDefinition } from "../command.ts";

/** Options for a new sandbox except its runtime and workspace, shared by commands and agents. */
export const sandboxOptions: readonly OptionDefinition[] = Object.values(fieldOptions).flatMap(({ options }) => options);
