import { defineCommands } from "../define-command.ts";

export const secretCommands = defineCommands([
  {
    path: ["secret", "set"],
    summary: "Store a secret in the station, for runs and sandboxes that name it",
    details: [
      "Reads the value from standard input, or asks for it at a terminal. It is injected into requests to its hosts, and never shown again.",
      "After the hosts: ;header= ;methods= ;paths= ;ports= ;git, as for --secret. Replaces a secret of the same name.",
    ].join("\n"),
    arguments: [{ name: "NAME@HOST[;…]", summary: "the variable inside, and the hosts that get its value" }],
    examples: [
      ["printf %s \"$TOKEN\" | caisson secret set 'GITHUB_TOKEN@github.com;git'", "then: caisson exec --secret GITHUB_TOKEN -- git push"],
      ["caisson secret set API_TOKEN@api.example.com", "asks for the value"],
    ],
    load: async () => (await import("./secret-commands.ts")).set,
  },
  {
    path: ["secret", "ls"],
    summary: "List the station's secrets and their hosts",
    examples: ["caisson secret ls"],
    load: async () => (await import("./secret-commands.ts")).listSecrets,
  },
  {
    path: ["secret", "rm"],
    summary: "Remove secrets from the station",
    details: "Running sandboxes lose access within a minute.",
    arguments: [{ name: "NAME", summary: "see `caisson secret ls`", repeat: true }],
    examples: ["caisson secret rm GITHUB_TOKEN"],
    load: async () => (await import("./secret-commands.ts")).removeSecrets,
  },
]);
