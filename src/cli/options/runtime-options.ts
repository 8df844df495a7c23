import type { OptionSpec } from "../command.ts";

export const runtimeOption: OptionSpec = {
  name: "runtime",
  value: "NAME",
  summary: "Which runtime to use: auto (default), oci, docker, host",
  choices: ["auto", "oci", "docker", "host"],
};
export const ociRuntimeOption: OptionSpec = {
  name: "oci-runtime",
  value: "NAME",
  summary: "Which OCI runtime: runc, crun, youki, runsc, or a path",
  choices: ["runc", "crun", "youki", "runsc"],
};
export const jsonOption: OptionSpec = { name: "json", summary: "Print JSON" };
