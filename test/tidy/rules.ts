import { dirname, join, normalize } from "node:path";

/** A file of the repository, as the rules see it. */
export interface SourceFile {
  /** Relative to the root, with `/`. */
  path: string;
  text: string;
}

export interface Violation {
  path: string;
  what: string;
}

export type Rule = (files: readonly SourceFile[]) => Violation[];

/** The folders below src/, and those that each may import. `sandbox` may import itself, and so on. */
export const mayImport: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  lib: [],
  sandbox: ["contract", "lib"],
  // Shared by every face and every station: the verbs, their types and their routes. Imports only types from the
  // sandbox.
  verbs: ["contract", "lib", "sandbox"],
  runtimes: ["contract", "lib", "sandbox"],
  suites: ["contract", "lib", "sandbox", "verbs"],
  log: ["contract", "lib"],
  workspace: ["contract", "lib", "sandbox", "log"],
  agent: ["contract", "lib", "sandbox"],
  network: ["contract", "lib", "sandbox"],
  workflow: ["contract", "lib"],
  station: ["contract", "lib", "sandbox", "verbs", "runtimes", "suites", "log", "workspace", "agent", "network", "workflow"],
  cli: ["contract", "lib", "verbs"],
  api: ["contract", "lib", "verbs"],
  // The same verbs at the other end of a connection, for Node and for browsers.
  client: ["contract", "lib", "verbs"],
  // Transfers folders of this machine to and from a remote station. It applies changes with the station's own rules,
  // not with a copy of them.
  "folder-transfer": ["contract", "lib", "sandbox", "verbs", "workspace", "station"],
  // Combines the real parts, once, for every face.
  compose: [
    "contract",
    "lib",
    "sandbox",
    "verbs",
    "runtimes",
    "suites",
    "log",
    "workspace",
    "agent",
    "network",
    "station",
    "cli",
    "api",
    "client",
    "folder-transfer",
  ],
};

/** For sources in either language. Tests may be longer, since a table of cases is read from top to bottom. */
const LINES_MAX = 400;
/** For the console, where a file is a component. */
const COMPONENT_LINES_MAX = 250;
/** A folder with a larger share would be most of the code, and no longer a part of it. */
const FOLDER_SHARE_MAX = 1 / 4;

export const importDirections: Rule = (files) =>
  files.flatMap((file) => {
    const folder = folderOf(file.path);
    if (folder === null || isTest(file.path)) return [];
    const allowed = mayImport[folder];
    if (allowed === undefined) return [{ path: file.path, what: `src/${folder} is not in the table of test/tidy/rules.ts` }];
    return relativeImportsOf(file).flatMap((target) => {
      const targetFolder = folderOf(target);
      if (targetFolder === folder || (targetFolder !== null && allowed.includes(targetFolder))) return [];
      return [{ path: file.path, what: `src/${folder} may not import ${target}` }];
    });
  });

/** The console is a separate program for browsers, with the same verbs as every other client. */
export const consoleKnowsTheClient: Rule = (files) =>
  files.flatMap((file) => {
    if (!file.path.startsWith("console/src/")) return [];
    return relativeImportsOf(file).flatMap((target) => {
      const isOurs = ["console/src/", "src/client/", "src/contract/", "src/verbs/", "src/lib/failures.ts"].some((place) =>
        target.startsWith(place),
      );
      return isOurs ? [] : [{ path: file.path, what: `the console may not import ${target}` }];
    });
  });

/** A runtime is a separate folder: no other runtime imports from it, and the CLI uses the interfaces. */
export const runtimesApart: Rule = (files) =>
  files.flatMap((file) => {
    if (isTest(file.path)) return [];
    const own = runtimeOf(file.path);
    return relativeImportsOf(file).flatMap((target) => {
      const other = runtimeOf(target);
      if (other === null || other === own) return [];
      if (own !== null) return [{ path: file.path, what: `the runtime ${own} imports from the runtime ${other}` }];
      return file.path.startsWith("src/cli/") || file.path.startsWith("src/lib/")
        ? [{ path: file.path, what: `imports from the runtime ${other}` }]
        : [];
    });
  });

export const childProcessOnlyInRuntimes: Rule = (files) =>
  files.flatMap((file) => {
    // The composition restarts the program to continue in the background; a secret may come from a command; people read
    // long texts in a pager; and a second process answers for a station that stalls.
    const places = [
      "src/runtimes/",
      "src/workspace/git/",
      "src/compose/network.ts",
      "src/compose/pager.ts",
      "src/api/overload/stall-guard.ts",
    ];
    const mayStart = places.some((place) => file.path.startsWith(place));
    if (!file.path.startsWith("src/") || mayStart || isTest(file.path)) return [];
    return importsOf(file).some((specifier) => /^(node:)?child_process$/.test(specifier))
      ? [{ path: file.path, what: "only runtimes and workspace/git may start host processes" }]
      : [];
  });

export const environmentOnlyInMain: Rule = (files) =>
  files.flatMap((file) => {
    const roots = ["src/main.ts", "src/index.ts"];
    if (!file.path.startsWith("src/") || roots.includes(file.path) || isTest(file.path)) return [];
    return /\bprocess\s*\.\s*env\b|\bimport\s*\{[^}]*\benv\b[^}]*\}\s*from\s*"node:process"/.test(withoutComments(file.text))
      ? [{ path: file.path, what: "only src/main.ts and src/index.ts read the environment" }]
      : [];
  });

/** Files that may write raw bytes: to connect a program to the user's streams, or a file to the user's pipe. */
const rawWriters = [
  "src/cli/terminal/output.ts",
  "src/cli/terminal/process-stdio.ts",
  "src/cli/terminal/print-diff.ts",
  "src/cli/sandboxes/cp.ts",
  "src/cli/runs/show-file.ts",
  "src/cli/server/artifact-commands.ts",
  "src/cli/templates/export-command.ts",
  // Writes messages for a program, never for a terminal.
  "src/cli/mcp/mcp.ts",
];
/** The last two are separate programs that write to a pipe of ours. */
const stdioOwners = ["src/caisson.ts", "src/main.ts", "src/runtimes/oci/template/unpack-main.ts", "src/api/overload/stall-guard-main.ts"];

export const terminalOnlyByLines: Rule = (files) =>
  files.flatMap((file) => {
    if (!file.path.startsWith("src/") || isTest(file.path)) return [];
    const text = withoutComments(file.text);
    const raw = /\.\s*writeRaw\b/.test(text) && !rawWriters.includes(file.path);
    const around = /\bprocess\s*\.\s*(stdout|stderr)\b|^\s*console\s*\./m.test(withoutStrings(text)) && !stdioOwners.includes(file.path);
    return raw || around ? [{ path: file.path, what: "write to a terminal only lines (src/cli/terminal/line.ts)" }] : [];
  });

export const lengths: Rule = (files) =>
  files.flatMap((file) => {
    if (!/\.([ch]|tsx?|js|mjs)$/.test(file.path) || isTest(file.path) || file.text.startsWith("// Generated")) return [];
    const max = file.path.startsWith("console/") ? COMPONENT_LINES_MAX : LINES_MAX;
    const lines = file.text.split("\n").length - 1;
    return lines > max ? [{ path: file.path, what: `${lines} lines; at most ${max}` }] : [];
  });

export const folderShares: Rule = (files) => {
  const lines = new Map<string, number>();
  for (const file of files) {
    const folder = folderOf(file.path);
    if (folder === null || isTest(file.path)) continue;
    lines.set(folder, (lines.get(folder) ?? 0) + file.text.split("\n").length - 1);
  }
  const all = [...lines.values()].reduce((sum, each) => sum + each, 0);
  return [...lines]
    .filter(([, each]) => each > all * FOLDER_SHARE_MAX)
    .map(([folder, each]) => ({ path: `src/${folder}`, what: `${each} of ${all} lines, more than a quarter` }));
};

export const names: Rule = (files) =>
  files.flatMap(({ path }) => {
    if (!/^(src|bench|test|guest|examples)\//.test(path)) return [];
    const name = path.split("/").at(-1) ?? "";
    const stem = name.replace(/\..*$/, "");
    if (/^(utils?|helpers?|manager|common|types|misc)$/.test(stem) || /(^|-)(utils?|helpers?|manager)$/.test(stem)) {
      return [{ path, what: "the file name is meaningless" }];
    }
    return /\.(ts|c|h)$/.test(name) && !/^[a-z0-9.-]+$/.test(name) ? [{ path, what: "file names are kebab-case" }] : [];
  });

/** A relative link in a page must lead to an existing file. */
export function deadLinks(exists: (path: string) => boolean): Rule {
  return (files) =>
    files
      .filter((file) => file.path.endsWith(".md"))
      .flatMap((file) =>
        [...file.text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
          if (/^[a-z]+:/.test(link) || link.startsWith("#")) return [];
          const target = normalize(join(dirname(file.path), decodeURI(link.replace(/#.*$/, ""))));
          return exists(target) ? [] : [{ path: file.path, what: `the link ${link} does not resolve` }];
        }),
      );
}

/** A dependency that users install with us is a decision, and decisions are recorded. */
export const dependenciesDecided: Rule = (files) => {
  const manifest = files.find((file) => file.path === "package.json");
  const decisions = files.filter((file) => file.path.startsWith("docs/adr/")).map((file) => file.text);
  const { dependencies = {} } = JSON.parse(manifest?.text ?? "{}") as { dependencies?: Record<string, string> };
  return Object.keys(dependencies)
    .filter((name) => !decisions.some((text) => text.includes(`\`${name}\``)))
    .map((name) => ({ path: "package.json", what: `no ADR has a line for the dependency \`${name}\`` }));
};

/**
 * The console's colors have names, with a light and a dark value each. Color numbers in a program's output do not
 * count.
 */
export const coloursHaveNames: Rule = (files) =>
  files.flatMap(({ path, text }) => {
    if (!/^console\/src\/.*\.(css|tsx?)$/.test(path) || path === "console/src/design/tokens.css" || path.includes(".test.")) return [];
    const found =
      /#[0-9a-f]{3,8}\b(?=[\s;,)"'`])|\b(?:rgba?|hsla?|oklch|oklab|lab|lch)\((?!\$)\s*[\d.]|:\s*(?:black|white|red|green|blue)\b/i.exec(
        text,
      );
    return found === null ? [] : [{ path, what: `uses a color (${found[0].trim()}) that belongs in design/tokens.css` }];
  });

/** The repository is about the product only, not about the machine where it happens to be. */
export const noMachinePaths: Rule = (files) =>
  files.flatMap((file) => {
    if (file.path === "package-lock.json") return [];
    const found =
      /(?<![\w/])\/(?:work\/(?:main|shared)|home\/(?!user\b|\$|me\b|alice\b|bob\b|dev\b|someone\b|\.)[a-z][\w-]+\/|Users\/)[\w./-]*/.exec(
        file.text,
      );
    return found === null ? [] : [{ path: file.path, what: `contains a path of a developer's machine: ${found[0]}` }];
  });

/** Returns every module specifier in a file: import, export from, import(), import type. */
export function importsOf(file: SourceFile): string[] {
  if (!/\.(tsx?|js|mjs)$/.test(file.path)) return [];
  const patterns = [
    /\b(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"/g,
    /\bimport\s*"([^"]+)"/g,
    /\bimport\s*\(\s*"([^"]+)"/g,
    /\brequire\s*\(\s*"([^"]+)"/g,
  ];
  return patterns.flatMap((pattern) => [...file.text.matchAll(pattern)].map((match) => match[1] as string));
}

/** Returns the path of every file that a file imports by a relative path. */
export function relativeImportsOf(file: SourceFile): string[] {
  const relatives = importsOf(file).filter((specifier) => specifier.startsWith("."));
  return relatives.map((specifier) => normalize(join(dirname(file.path), specifier)));
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
}

/** Removes strings, since programs for inside are written as strings and are not our modules. */
function withoutStrings(text: string): string {
  return text.replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "");
}

function folderOf(path: string): string | null {
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? null;
}

function runtimeOf(path: string): string | null {
  return /^src\/runtimes\/(?!hardening\/)([^/]+)\//.exec(path)?.[1] ?? null;
}

export function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path) || /\/testing[^/]*\.ts$/.test(path);
}
