import type { OptionSpec } from "../command.ts";

/** What a new sandbox may reach; the same wherever one is made. */
export const networkOptions: readonly OptionSpec[] = [
  {
    name: "network",
    value: "POLICY",
    repeat: true,
    summary: "none (default), open, registries, transparent, or what may be reached: HOST[:PORT], *.HOST, 'GET HOST/PATH'",
    choices: ["none", "open", "registries"],
  },
  {
    name: "secret",
    value: "NAME[@HOST[;…]]",
    repeat: true,
    summary:
      "A variable that is a placeholder inside and gets its value on the way to HOST; ;from= ;header= ;methods= ;paths= ;git. NAME alone: as the station keeps it or the configuration defines it",
  },
  { name: "gateway", value: "WIRES", summary: "Expose a model endpoint inside (anthropic, openai or both); your API key stays outside" },
  { name: "gateway-models", value: "PATTERNS", summary: "Only these models, comma-separated; * matches any characters" },
  { name: "gateway-cost", value: "USD", summary: "Refuse calls once this much has been spent" },
  { name: "gateway-tokens", value: "N", summary: "Refuse calls after N tokens" },
];
