import type { CommandSpec, OptionSpec } from "../command.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };
const name = { name: "NAME", summary: "a context's name; see `caisson context ls`" };

const addressOptions: readonly OptionSpec[] = [
  { name: "token-stdin", summary: "Read the token from standard input" },
  { name: "token-file", value: "FILE", summary: "Read the token from a file" },
  { name: "ca-file", value: "FILE", summary: "Certificates, in PEM form, that the station's own must lead to" },
  { name: "insecure", summary: "Send the token in the clear, where the address is http:// on another machine" },
];

export const contextCommands: readonly CommandSpec[] = [
  {
    path: ["login"],
    place: "here",
    summary: "Use a station elsewhere from now on: asks for the token, tries it and keeps it",
    details: [
      "Every command then works with that station: `run`, `exec`, `diff`, `apply` and the others, on the folders of this machine.",
      "The token is kept in your configuration folder, in a file that only you can read.",
    ].join("\n"),
    options: [{ name: "name", value: "NAME", summary: "The context's name (default: the host's)" }, ...addressOptions, json],
    arguments: [{ name: "URL", summary: "the station's address, such as https://station.example.org" }],
    examples: [
      ["caisson login https://station.example.org", "asks for the token; then: caisson run …"],
      ["caisson login http://127.0.0.1:7433 --name tunnel --token-stdin < token", ""],
    ],
    load: async () => ({ run: (await import("./context-commands.ts")).login }),
  },
  {
    path: ["logout"],
    place: "here",
    summary: "Forget a station's token, and work on this machine again",
    options: [json],
    arguments: [{ ...name, summary: "a context's name (default: the current one)", optional: true }],
    examples: [["caisson logout", ""]],
    load: async () => ({ run: (await import("./context-commands.ts")).logout }),
  },
  {
    path: ["context", "create"],
    place: "here",
    summary: "Keep the address of a station under a name",
    options: [
      { name: "url", value: "URL", summary: "The station's address: https://…, or http:// on this machine" },
      ...addressOptions,
      { name: "use", summary: "Make it the current one" },
      json,
    ],
    arguments: [{ ...name, summary: "what you will know it by" }],
    examples: [["caisson context create build --url https://build.example.org --token-file token", "then: caisson ps --context build"]],
    load: async () => ({ run: (await import("./context-commands.ts")).create }),
  },
  {
    path: ["context", "use"],
    place: "here",
    summary: "Choose the station that commands work with; `local` is this machine's",
    options: [json],
    arguments: [name],
    examples: [
      ["caisson context use build", ""],
      ["caisson context use local", "back to this machine"],
    ],
    load: async () => ({ run: (await import("./context-commands.ts")).use }),
  },
  {
    path: ["context", "ls"],
    place: "here",
    summary: "List contexts",
    options: [json],
    arguments: [],
    examples: [["caisson context ls", "the current one has a *"]],
    load: async () => ({ run: (await import("./context-commands.ts")).list }),
  },
  {
    path: ["context", "show"],
    place: "here",
    summary: "Show a context, or the current one; never its token",
    options: [json],
    arguments: [{ ...name, optional: true }],
    examples: [["caisson context show", ""]],
    load: async () => ({ run: (await import("./context-commands.ts")).show }),
  },
  {
    path: ["context", "rm"],
    place: "here",
    summary: "Remove contexts with their tokens",
    options: [json],
    arguments: [{ ...name, repeat: true }],
    examples: [["caisson context rm build", ""]],
    load: async () => ({ run: (await import("./context-commands.ts")).remove }),
  },
];
