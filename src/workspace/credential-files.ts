import { closeSync, constants, type Dirent, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import type { HidingRules } from "../contract/workspace-guard.ts";
import { createPauses } from "../lib/pauses.ts";
import { matchesWildcards } from "../lib/wildcards.ts";

/**
 * How far a folder is looked through. Files near its root come first, so that what is missed in a huge one lies deep.
 */
export interface SearchBounds {
  depthMax: number;
  entriesMax: number;
  /** Of work; while other work has the event loop, none of it passes. */
  timeMaxMs: number;
}
export const searchBounds: SearchBounds = { depthMax: 4, entriesMax: 20_000, timeMaxMs: 500 };

/** What a file must contain to be taken for a credential is looked for in so much of it. */
const HEAD_BYTES = 16_384;
/** Folders of other people's code or of what can be made again, and git's own. */
const notLookedInto: ReadonlySet<string> = new Set(
  ".git .hg .svn node_modules vendor target venv .venv __pycache__ .tox .cache .gradle .terraform .next dist build".split(" "),
);

export interface CredentialFiles {
  /** Relative to the folder; a folder stands for all that is in it. */
  paths: string[];
  /** False where a bound ended the search. */
  complete: boolean;
}

/** Hidden by their names alone. */
export const hiddenByName: readonly string[] = words(`
  .env .env.* *.env id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk .netrc _netrc .git-credentials .pgpass .my.cnf .pypirc .htpasswd .vault-token
  credentials.json service-account*.json application_default_credentials.json *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk .dockercfg .docker/config.json
  .ssh .gnupg .password-store .aws/credentials .aws/sso .aws/cli .azure .kube/config .config/gcloud .config/gh/hosts.yml
`);

/** Named like the others, and made to be shared. */
const neverHidden: readonly string[] = words(
  ".env.example .env.*.example example.env .env.sample .env.template .env.dist .env.defaults .env.schema sample.env template.env",
);

/** Hidden where they hold what the pattern says. */
const hiddenByContent: readonly { names: readonly string[]; holds: RegExp }[] = [
  { names: words("*.pem *.key *.asc"), holds: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/ },
  {
    names: words(".npmrc .yarnrc .yarnrc.yml"),
    holds: /(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)["']?\s*[=:]\s*["']?(?!\$\{)[^\s"']/,
  },
  { names: words("pip.conf .condarc .bowerrc .gitconfig"), holds: /https?:\/\/[^\s/@:]+:[^\s/@]+@/ },
];

/**
 * The files of a folder that a sandbox is not to see. Links are not followed. Never throws: what cannot be read is not
 * seen inside either.
 */
export async function findCredentialFiles(
  folder: string,
  rules: HidingRules,
  bounds: SearchBounds = searchBounds,
): Promise<CredentialFiles> {
  const hide = matcher([...hiddenByName, ...rules.hide]);
  const asked = matcher(rules.hide);
  const show = matcher(rules.show);
  const example = matcher(neverHidden);
  const byContent = hiddenByContent.map(({ names, holds }) => ({ matches: matcher(names), holds }));
  const isHidden = (path: string, entry: Dirent) => {
    if (show(path)) return false;
    if (asked(path)) return true;
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
        // Asked of each entry: what one costs depends on the rules.
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

/** Whether one of the patterns names a path, which is relative to the workspace. */
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
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function headOf(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
    const bytes = Buffer.alloc(HEAD_BYTES);
    return bytes.toString("latin1", 0, readSync(fd, bytes, 0, HEAD_BYTES, 0));
  } catch {
    return "";
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
