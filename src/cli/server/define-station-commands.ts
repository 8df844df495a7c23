import { defineCommands } from "../define-command.ts";
import { jsonOption as json } from "../options/runtime-options.ts";
import { logOptions } from "./log-levels.ts";

export const stationCommands = defineCommands([
  {
    path: ["up"],
    summary: "Start the station's server; it runs until Ctrl-C or `caisson down`",
    details: [
      "It listens on a local port for programs with a token, and on a socket in the state folder, which needs none.",
      "If there is no token yet, it creates one with every right, and shows it once.",
    ].join("\n"),
    options: [
      { name: "port", value: "PORT", summary: "Port to listen on (default 7433; 0: a free one)" },
      { name: "listen-host", value: "ADDRESS", summary: "Address to listen on (default 127.0.0.1); others need TLS or a proxy" },
      { name: "tls-cert", value: "FILE", summary: "TLS certificate with its chain, in PEM" },
      { name: "tls-key", value: "FILE", summary: "The certificate's key, in PEM" },
      { name: "public-url", value: "URL", summary: "Its URL for other machines, such as https://caisson.example.com" },
      { name: "previews-at", value: "URL", summary: "URL of its previews for other machines, such as https://*.previews.example.com" },
      { name: "proxy", value: "ADDRESS", summary: "Address of the proxy that terminates TLS; only it may connect", repeat: true },
      { name: "detach", short: "d", summary: "Run in the background; return once it listens" },
      { name: "ready", value: "N", summary: "Keep this many sandboxes ready for commands (default 2; 0: none)" },
      { name: "no-token", summary: "Create no first token" },
      ...logOptions,
      json,
    ],
    place: "here",
    handlesSignals: true,
    examples: [
      "caisson up --detach",
      ['curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7433/v1/sandboxes', "with the token that it printed"],
    ],
    load: async () => (await import("./station-commands.ts")).up,
  },
  {
    path: ["down"],
    summary: "Stop the station; sandboxes stay, and the next station continues its runs",
    options: [
      { name: "drain", summary: "Start no new runs, and wait until the active ones have ended" },
      { name: "timeout", value: "TIME", summary: "With --drain: wait at most this long, then detach from the rest" },
      json,
    ],
    place: "here",
    examples: [
      ["caisson down", "active runs are interrupted, and can continue"],
      ["caisson down --drain --timeout 10m", "give active runs ten minutes to end"],
    ],
    load: async () => (await import("./station-commands.ts")).down,
  },
  {
    path: ["status"],
    summary: "Show which station commands use, and whether it runs",
    details: [
      "Commands use the station at CAISSON_URL, or else the one that runs on this state folder. Without a station, they do the work themselves.",
      "Exit code: 0 if one runs, otherwise 1.",
    ].join("\n"),
    examples: ["caisson status --json"],
    load: async () => (await import("./station-commands.ts")).status,
  },
  {
    path: ["console"],
    summary: "Print a URL that opens the station's web console, signed in",
    details: [
      "The URL contains a code that signs in one browser, once and within a minute. The browser then gets a token that expires.",
      "The station must run: caisson up --detach",
    ].join("\n"),
    options: [
      { name: "scope", value: "SCOPE", summary: "Rights of the browser: read, run or admin (default admin)" },
      { name: "expires", value: "TIME", summary: "Lifetime of the browser's token, such as 1h (default 12h)" },
      json,
    ],
    examples: ["caisson console", ["caisson console --scope read --expires 1h", "read-only, for an hour"]],
    load: async () => (await import("./console-command.ts")).openConsole,
  },
  {
    path: ["token", "create"],
    summary: "Create an API token, and print it once",
    details: [
      "read: look at sandboxes, runs and sessions. run: create and use them, without naming anything on the station's machine.",
      "admin: everything, including folders of this machine and other tokens.",
      "A read or run token sees only what belongs to its owner.",
    ].join("\n"),
    options: [
      { name: "scope", value: "SCOPE", summary: "read, run (default) or admin", choices: ["read", "run", "admin"] },
      { name: "owner", value: "OWNER", summary: "Owner of the token and of what it creates (default local: the user of this machine)" },
      { name: "expires", value: "TIME", summary: "Expire after this long, such as 12h or 30d (default: never)" },
      json,
    ],
    arguments: [{ name: "NAME", summary: "a name for the token" }],
    examples: [
      "TOKEN=$(caisson token create ci --scope run --expires 30d)",
      ["caisson token create ada-laptop --owner ada", "sees only what belongs to Ada"],
    ],
    load: async () => (await import("./token-commands.ts")).create,
  },
  {
    path: ["token", "ls"],
    summary: "List tokens",
    examples: ["caisson token ls"],
    load: async () => (await import("./token-commands.ts")).listTokens,
  },
  {
    path: ["token", "rotate"],
    summary: "Replace a token's secret, and print the new one once",
    details: "The old secret stops working at once, or after --grace, so that you have time to distribute the new one.",
    options: [{ name: "grace", value: "TIME", summary: "Accept the old secret this much longer, such as 1h (default: not at all)" }, json],
    arguments: [{ name: "NAME|ID", summary: "see `caisson token ls`" }],
    examples: ["TOKEN=$(caisson token rotate ci --grace 1h)"],
    load: async () => (await import("./token-commands.ts")).rotate,
  },
  {
    path: ["token", "rm"],
    summary: "Revoke tokens immediately",
    arguments: [{ name: "NAME|ID", summary: "see `caisson token ls`", repeat: true }],
    examples: ["caisson token rm ci"],
    load: async () => (await import("./token-commands.ts")).removeTokens,
  },
  {
    path: ["audit"],
    summary: "Show the audit log: requests to the station, newest first",
    details: "It contains every call that changes something, recorded before it takes effect, and every denied call.",
    options: [
      { name: "since", value: "TIME", summary: "Only entries younger than this, such as 12h or 7d" },
      { name: "failed", summary: "Only calls that failed or were refused" },
      { name: "action", value: "NAME", summary: "Only this action, such as runs.start, or runs for all of runs" },
      { name: "token", value: "NAME|ID", summary: "Only calls with this token" },
      { name: "owner", value: "OWNER", summary: "Only calls by this owner" },
      { name: "about", value: "ID|NAME", summary: "Only entries about this id or name" },
      { name: "limit", value: "N", summary: "Show at most this many (default 50)" },
      json,
    ],
    examples: ["caisson audit --failed --since 1d"],
    load: async () => (await import("./audit-command.ts")).audit,
  },
]);
