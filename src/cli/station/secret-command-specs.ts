import type { CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };

export const secretCommands: readonly CommandSpec[] = [
  {
    path: ["secret", "set"],
    summary: "Keep a secret in the station, for runs and sandboxes that name it",
    details: [
      "Its value is read from standard input, or asked for at a terminal. It is put in on the way to its hosts, and never shown again.",
      "After the hosts: ;header= ;methods= ;paths= ;ports= ;git, as for --secret. One of the same name is replaced.",
    ].join("\n"),
    options: [json],
    arguments: [{ name: "NAME@HOST[;…]", summary: "the variable inside, and where its value may go" }],
    examples: [
      ["printf %s \"$TOKEN\" | caisson secret set 'GITHUB_TOKEN@github.com;git'", "then: caisson exec --secret GITHUB_TOKEN -- git push"],
      ["caisson secret set API_TOKEN@api.example.com", "asks for the value"],
    ],
    load: async () => ({ run: (await import("./secret-commands.ts")).set }),
  },
  {
    path: ["secret", "ls"],
    summary: "List the secrets that the station keeps, and where they may go",
    options: [json],
    arguments: [],
    examples: [["caisson secret ls", ""]],
    load: async () => ({ run: (await import("./secret-commands.ts")).list }),
  },
  {
    path: ["secret", "rm"],
    summary: "Remove secrets from the station",
    details: "What uses one goes on without it within a minute.",
    options: [json],
    arguments: [{ name: "NAME", summary: "see `caisson secret ls`", repeat: true }],
    examples: [["caisson secret rm GITHUB_TOKEN", ""]],
    load: async () => ({ run: (await import("./secret-commands.ts")).remove }),
  },
];
