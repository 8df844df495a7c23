import { fieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { OptionSpec } from "../command.ts";

/** Options for a new sandbox except its runtime and workspace, shared by commands and agents. */
export const sandboxOptions: readonly OptionSpec[] = Object.values(fieldOptions).flatMap(({ options }) => options);
