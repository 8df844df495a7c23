import type { CommandSpec, OptionSpec } from "../command.ts";
import { logOptions } from "./log-levels.ts";

const json: OptionSpec = { name: "json", summary: "Print JSON" };

export const stationCommands: readonly CommandSpec[] = [
  {
    path: ["up"],
    summary: "Serve the station over HTTP, until Ctrl-C or `caisson down`",
    details: [
      "On a port of this machine for programs with a token, and on a socket in the state folder, for which none is needed.",
      "Where there is no token yet, one with every right is made and shown once.",
    ].join("\n"),
    options: [
      { name: "port", value: "PORT", summary: "The port of this machine (default 7433; 0: any that is free)" },
      { name: "listen-host", value: "ADDRESS", summary: "Where to listen (default 127.0.0.1); others need TLS or a proxy" },
      { name: "tls-cert", value: "FILE", summary: "The certificate with its chain, in PEM" },
      { name: "tls-key", value: "FILE", summary: "The certificate's key, in PEM" },
      { name: "public-url", value: "URL", summary: "What others call it, such as https://caisson.example.com" },
      { name: "previews-at", value: "URL", summary: "What others call its previews, such as https://*.previews.example.com" },
      { name: "proxy", value: "ADDRESS", summary: "A proxy that encrypts in front of it; only it may connect", repeat: true },
      { name: "detach", short: "d", summary: "In the background: come back when it listens" },
      { name: "ready", value: "N", summary: "Sandboxes that are kept ready for commands (default 2; 0: none)" },
      { name: "no-token", summary: "Make no first token" },
      ...logOptions,
      json,
    ],
    arguments: [],
    place: "here",
    handlesSignals: true,
    examples: [
      ["caisson up --detach", ""],
      ['curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7433/v1/sandboxes', "with the token it showed"],
    ],
    load: async () => ({ run: (await import("./station-commands.ts")).up }),
  },
  {
    path: ["down"],
    summary: "End the station; sandboxes stay, and the next one goes on with its runs",
    options: [
      { name: "drain", summary: "Wait until the runs that it drives have ended; it takes no new ones meanwhile" },
      { name: "timeout", value: "TIME", summary: "With --drain: wait this long at most, then let them go" },
      json,
    ],
    arguments: [],
    place: "here",
    examples: [
      ["caisson down", "runs are let go where they are"],
      ["caisson down --drain --timeout 10m", "they have ten minutes to end"],
    ],
    load: async () => ({ run: (await import("./station-commands.ts")).down }),
  },
  {
    path: ["status"],
    summary: "Which station commands work with, and whether it runs",
    details: [
      "The one of CAISSON_URL, else the one that runs on this state folder, found by its socket; without one, commands do their work themselves.",
      "Exit code: 0 when one runs, 1 when none does.",
    ].join("\n"),
    options: [json],
    arguments: [],
    examples: [["caisson status --json", ""]],
    load: async () => ({ run: (await import("./station-commands.ts")).status }),
  },
  {
    path: ["console"],
    summary: "The address of the station's pages, signed in: open it in a browser",
    details: [
      "The address carries a code that signs one browser in, once and within a minute; the browser then has a token that ends by itself.",
      "The station must run: caisson up --detach",
    ].join("\n"),
    options: [
      { name: "scope", value: "SCOPE", summary: "What may be done there: read, run or admin (default admin)" },
      { name: "expires", value: "TIME", summary: "When the browser's token ends, such as 1h (default 12h)" },
      json,
    ],
    arguments: [],
    examples: [
      ["caisson console", ""],
      ["caisson console --scope read --expires 1h", "read-only, for an hour"],
    ],
    load: async () => ({ run: (await import("./console-command.ts")).openConsole }),
  },
  {
    path: ["token", "create"],
    summary: "Make a token for a program that talks to the station, and print it once",
    details: [
      "read: look at sandboxes, runs and sessions. run: make and use them, without naming anything of this machine.",
      "admin: everything, folders of this machine and other tokens included.",
      "A token that may only read or run sees what belongs to its owner, and nothing else.",
    ].join("\n"),
    options: [
      { name: "scope", value: "SCOPE", summary: "read, run (default) or admin", choices: ["read", "run", "admin"] },
      { name: "owner", value: "OWNER", summary: "Whose it is, and what is made with it (default local: the user of this machine)" },
      { name: "expires", value: "TIME", summary: "Expires after this long, such as 12h or 30d (default: never)" },
      json,
    ],
    arguments: [{ name: "NAME", summary: "what you will know it by" }],
    examples: [
      ["TOKEN=$(caisson token create ci --scope run --expires 30d)", ""],
      ["caisson token create ada-laptop --owner ada", "sees only what is Ada's"],
    ],
    load: async () => ({ run: (await import("./token-commands.ts")).create }),
  },
  {
    path: ["token", "ls"],
    summary: "List tokens",
    options: [json],
    arguments: [],
    examples: [["caisson token ls", ""]],
    load: async () => ({ run: (await import("./token-commands.ts")).list }),
  },
  {
    path: ["token", "rotate"],
    summary: "Give a token another secret, and print it once",
    details: "The old secret stops working at once, or after --grace, which leaves time to hand the new one to the programs that use it.",
    options: [
      { name: "grace", value: "TIME", summary: "How long the old secret is still accepted, such as 1h (default: not at all)" },
      json,
    ],
    arguments: [{ name: "NAME|ID", summary: "see `caisson token ls`" }],
    examples: [["TOKEN=$(caisson token rotate ci --grace 1h)", ""]],
    load: async () => ({ run: (await import("./token-commands.ts")).rotate }),
  },
  {
    path: ["token", "rm"],
    summary: "Revoke tokens, at once",
    options: [],
    arguments: [{ name: "NAME|ID", summary: "see `caisson token ls`", repeat: true }],
    examples: [["caisson token rm ci", ""]],
    load: async () => ({ run: (await import("./token-commands.ts")).remove }),
  },
  {
    path: ["audit"],
    summary: "What was asked of the station over its socket and port, the newest first",
    details: "Every call that changes something is recorded before it takes effect, and so is every call that was denied access.",
    options: [
      { name: "since", value: "TIME", summary: "Not older than this, such as 12h or 7d" },
      { name: "failed", summary: "Only what failed or was refused" },
      { name: "action", value: "NAME", summary: "Only this call, such as runs.start, or runs for all calls about runs" },
      { name: "token", value: "NAME|ID", summary: "Only calls with this token" },
      { name: "owner", value: "OWNER", summary: "Only calls by this owner" },
      { name: "about", value: "ID|NAME", summary: "Only entries about this" },
      { name: "limit", value: "N", summary: "How many at most (default 50)" },
      json,
    ],
    arguments: [],
    examples: [["caisson audit --failed --since 1d", ""]],
    load: async () => ({ run: (await import("./audit-command.ts")).audit }),
  },
];
