import { closeSync, constants, type Dirent, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import type { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import { createPauses } from "../lib/pauses.ts";
import { matchesWildcards } from "../lib/wildcards.ts";

/** Limits of the search in a folder. It starts at the root, so in a huge folder only deep files are missed. */
export interface SearchBounds {
  depthMax: number;
  entriesMax: number;
  /** Working time; time that other work spends on the event loop does not count. */
  timeMaxMs: number;
}
export const searchBounds: SearchBounds = { depthMax: 4, entriesMax: 20_000, timeMaxMs: 500 };

/** How much of a file is searched for a credential. */
const HEAD_BYTES = 16_384;
/** Folders with third-party code or generated files, and those of version control. */
const notLookedInto: ReadonlySet<string> = new Set(
  ".git .hg .svn node_modules vendor target venv .venv __pycache__ .tox .cache .gradle .terraform .next dist build".split(" "),
);

export interface CredentialFiles {
  /** Paths relative to the folder. A folder includes everything in it. */
  paths: string[];
  /** False if a limit ended the search. */
  complete: boolean;
}

/** Patterns of files that are hidden because of their name alone. */
export const hiddenByName: readonly string[] = words(`
  .env .env.* *.env id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk .netrc _netrc .git-credentials .pgpass .my.cnf .pypirc .htpasswd .vault-token
  credentials.json service-account*.json application_default_credentials.json *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk .dockercfg .docker/config.json
  .ssh .gnupg .password-store .aws/credentials .aws/sso .aws/cli .azure .kube/config .config/gcloud .config/gh/hosts.yml
`);

/** Names that look the same, but are meant to be shared. */
const neverHidden: readonly string[] = words(
  ".env.example .env.*.example example.env .env.sample .env.template .env.dist .env.defaults .env.schema sample.env template.env",
);

/** Files that are hidden if their content matches the pattern. */
const hiddenByContent: readonly { names: readonly string[]; holds: RegExp }[] = [
  { names: words("*.pem *.key *.asc"), holds: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/ },
  {
    names: words(".npmrc .yarnrc .yarnrc.yml"),
    holds: /(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)["']?\s*[=:]\s*["']?(?!\$\{)[^\s"']/,
  },
  { names: words("pip.conf .condarc .bowerrc .gitconfig"), holds: /https?:\/\/[^\s/@:]+:[^\s/@]+@/ },
];

/**
 * Finds the files in a folder that a sandbox must not see. Does not follow links. Skips folders that this user may not
 * read, since the sandbox cannot read them either. Throws on any other failure, because a failure must not reveal
 * credentials.
 */
export async function findCredentialFiles(
  folder: string,
  rules: HidingRules,
  bounds: SearchBounds = searchBounds,
): Promise<CredentialFiles> {
  const hide = matcher([...hiddenByName, ...rules.hide]);
  const hideExplicitly = matcher(rules.hide);
  const show = matcher(rules.show);
  const example = matcher(neverHidden);
  const byContent = hiddenByContent.map(({ names, holds }) => ({ matches: matcher(names), holds }));
  const isHidden = (path: string, entry: Dirent) => {
    if (show(path)) return false;
    if (hideExplicitly(path)) return true;
    if (example(path)) return false;
    return (
      hide(path) || (entry.isFile() && byContent.some(({ matches, holds }) => matches(path) && holds.test(headOf(join(folder, path)))))
    );
  };
  const pause = createPauses();
  const paths: string[] = [];
  let entriesLeft = bounds.entriesMax;
  let level = [""];
  for (let depth = 0; level.length > 0 && depth < bounds.depthMax; depth++) {
    const next: string[] = [];
    for (const at of level) {
      if (entriesLeft <= 0) return { paths, complete: false };
      for (const entry of entriesOf(join(folder, at))) {
        // Checked for each entry, because its cost depends on the rules.
        if ((await pause()) > bounds.timeMaxMs) return { paths, complete: false };
        entriesLeft--;
        const path = at === "" ? entry.name : `${at}/${entry.name}`;
        if (isHidden(path, entry)) paths.push(path);
        else if (entry.isDirectory() && !notLookedInto.has(entry.name)) next.push(path);
      }
    }
    level = next;
  }
  return { paths, complete: true };
}

/** Returns a test whether one of the patterns matches a path relative to the workspace. */
function matcher(patterns: readonly string[]): (path: string) => boolean {
  const names: string[] = [];
  const paths: string[][] = [];
  for (const pattern of patterns) {
    const segments = pattern.split("/").filter((segment) => segment !== "");
    if (pattern.includes("/")) paths.push(segments);
    else names.push(pattern);
  }
  return (path) => {
    const segments = path.split("/");
    const name = segments.at(-1) ?? "";
    return (
      names.some((pattern) => matchesWildcards(pattern, name)) ||
      paths.some(
        (pattern) => pattern.length === segments.length && pattern.every((each, index) => matchesWildcards(each, segments[index] ?? "")),
      )
    );
  };
}

function entriesOf(folder: string): Dirent[] {
  return ifErrnoSync(() => readdirSync(folder, { withFileTypes: true }), UNREACHABLE, []);
}

function headOf(path: string): string {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
  const fd = ifErrnoSync(() => openSync(path, flags), [...UNREACHABLE, "ENXIO"], null);
  if (fd === null) return "";
  try {
    const bytes = Buffer.alloc(HEAD_BYTES);
    return bytes.toString("latin1", 0, readSync(fd, bytes, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
