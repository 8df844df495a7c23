import type { OptionDefinition } from "../command.ts";
import { defineCommands } from "../define-command.ts";

const json: OptionDefinition = { name: "json", summary: "Print JSON" };
const name = { name: "NAME", summary: "a context's name; see `caisson context ls`" };

const addressOptions: readonly OptionDefinition[] = [
  { name: "token-stdin", summary: "Read the token from standard input" },
  { name: "token-file", value: "FILE", summary: "Read the token from a file" },
  { name: "ca-file", value: "FILE", summary: "Trust only these certificates (PEM) for the station" },
  { name: "insecure", summary: "Send the token unencrypted to an http:// URL of another machine" },
];

export const contextCommands = defineCommands([
  {
    path: ["login"],
    place: "here",
    summary: "Use a remote station from now on; asks for its token, and checks it",
    details: [
      "Every command then works through that station: `run`, `exec`, `diff`, `apply` and the others, on the folders of this machine.",
      "The token is stored in your configuration folder, in a file that only you can read.",
    ].join("\n"),
    options: [{ name: "name", value: "NAME", summary: "Context name (default: the host's)" }, ...addressOptions, json],
    arguments: [{ name: "URL", summary: "the station's URL, such as https://station.example.org" }],
    examples: [
      ["caisson login https://station.example.org", "asks for the token; then: caisson run …"],
      "caisson login http://127.0.0.1:7433 --name tunnel --token-stdin < token",
    ],
    load: async () => (await import("./context-commands.ts")).login,
  },
  {
    path: ["logout"],
    place: "here",
    summary: "Remove a station's token, and work on this machine again",
    arguments: [{ ...name, summary: "a context's name (default: the current one)", optional: true }],
    examples: ["caisson logout"],
    load: async () => (await import("./context-commands.ts")).logout,
  },
  {
    path: ["context", "create"],
    place: "here",
    summary: "Store a station's URL under a name",
    options: [
      { name: "url", value: "URL", summary: "The station's URL: https://…, or http:// on this machine" },
      ...addressOptions,
      { name: "use", summary: "Use it from now on" },
      json,
    ],
    arguments: [{ ...name, summary: "a name for the context" }],
    examples: [["caisson context create build --url https://build.example.org --token-file token", "then: caisson ps --context build"]],
    load: async () => (await import("./context-commands.ts")).create,
  },
  {
    path: ["context", "use"],
    place: "here",
    summary: "Choose the station that commands use; `local` is this machine's",
    arguments: [name],
    examples: ["caisson context use build", ["caisson context use local", "back to this machine"]],
    load: async () => (await import("./context-commands.ts")).use,
  },
  {
    path: ["context", "ls"],
    place: "here",
    summary: "List contexts",
    examples: [["caisson context ls", "a * marks the current one"]],
    load: async () => (await import("./context-commands.ts")).listContexts,
  },
  {
    path: ["context", "show"],
    place: "here",
    summary: "Show a context without its token (default: the current one)",
    arguments: [{ ...name, optional: true }],
    examples: ["caisson context show"],
    load: async () => (await import("./context-commands.ts")).showContext,
  },
  {
    path: ["context", "rm"],
    place: "here",
    summary: "Remove contexts with their tokens",
    arguments: [{ ...name, repeat: true }],
    examples: ["caisson context rm build"],
    load: async () => (await import("./context-commands.ts")).removeContexts,
  },
]);
