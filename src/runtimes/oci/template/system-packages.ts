import { readFileSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import type { EtcCopy, GeneratedFile, SystemAccounts } from "./etc-files.ts";
import type { TemplateBind } from "./host-template.ts";

/** The folder in which dpkg records installed packages. */
export const dpkgState = "/var/lib/dpkg";

export interface SystemPackages {
  binds: TemplateBind[];
  folders: string[];
  files: GeneratedFile[];
  copies: EtcCopy[];
  accounts: SystemAccounts;
}

/**
 * Returns what apt and dpkg need besides /usr so that root inside can install packages over the machine's own: the list
 * of installed packages, and the sources of others. Sources are the distribution's public archives: the user's own may
 * contain hosts and passwords that must not be visible inside. Null if dpkg does not manage this machine.
 */
export function systemPackages(machine: { osRelease?: string; arch?: string } = {}): SystemPackages | null {
  if (lstatOrNull(`${dpkgState}/status`) === null) return null;
  const sources = packageSources({ osRelease: machine.osRelease ?? textOf("/etc/os-release"), arch: machine.arch ?? process.arch });
  return {
    binds: [{ source: dpkgState, target: dpkgState, kind: "folder", why: "installed packages, for apt" }],
    folders: [
      "/etc/apt/apt.conf.d",
      "/etc/apt/preferences.d",
      "/etc/apt/sources.list.d",
      "/etc/init.d",
      "/var/cache/apt/archives/partial",
      "/var/cache/debconf",
      "/var/lib/apt/lists/partial",
      "/var/log/apt",
    ],
    files: [
      // Packages that create a user need these. They grant no rights: no user can become root with them.
      { path: "/etc/pam.d/other", mode: 0o644, content: pamRules },
      { path: "/etc/shadow", mode: 0o640, content: "root:*:19000:0:99999:7:::\n" },
      { path: "/etc/gshadow", mode: 0o640, content: "root:*::\n" },
      ...(sources === null ? [] : [{ path: "/etc/apt/sources.list.d/system.sources", mode: 0o644, content: sources }]),
    ],
    copies: [
      { path: "/etc/apt/trusted.gpg.d", why: "public keys of package archives" },
      { path: "/etc/dpkg", why: "dpkg's settings" },
      { path: "/etc/debconf.conf", why: "packages use it for their configuration" },
      { path: "/etc/adduser.conf", why: "packages create users with it" },
      { path: "/etc/deluser.conf", why: "packages remove users with it" },
      { path: "/etc/login.defs", why: "packages create users with it" },
    ],
    accounts: packageAccounts({
      overrides: textOf(`${dpkgState}/statoverride`),
      passwd: textOf("/etc/passwd"),
      group: textOf("/etc/group"),
    }),
  };
}

const pamRules = ["auth", "account", "password", "session"].map((kind) => `${kind} required pam_permit.so\n`).join("");

/**
 * Replaces apt in an ordinary user's sandbox, where it cannot work: the machine's files belong to the overflow user
 * there, so root inside cannot change them. The replacement says why apt fails and what to do instead, where apt would
 * only ask "are you root?".
 */
export function refusedPackageTools(): GeneratedFile[] {
  if (lstatOrNull(`${dpkgState}/status`) === null) return [];
  return ["apt", "apt-get"].map((name) => ({ path: `/.caisson/bin/${name}`, mode: 0o755, content: refusal(name) }));
}

const refusal = (name: string) => `#!/bin/sh
for word; do
  case $word in
    install | reinstall | remove | purge | autoremove | update | upgrade | dist-upgrade | full-upgrade | build-dep)
      echo "${name}: packages cannot be installed here: the machine's files belong to its root, not to the root of an ordinary user's sandbox" >&2
      echo "Build an image with them instead, outside: caisson image build debian --include PACKAGE,... --name NAME" >&2
      echo "Then start from it: caisson exec --image NAME ..." >&2
      exit 100
      ;;
  esac
done
exec /usr/bin/${name} "$@"
`;

/** Returns the sources in `deb822` format, or null for a distribution whose archives are not known. */
export function packageSources({ osRelease, arch }: { osRelease: string; arch: string }): string | null {
  const field = (name: string) => new RegExp(`^${name}="?([a-z0-9.-]+)"?$`, "m").exec(osRelease)?.[1];
  const [id, suite] = [field("ID"), field("VERSION_CODENAME")];
  if (suite === undefined) return null;
  if (id === "debian") {
    const keyring = "debian-archive-keyring.gpg";
    return [
      stanza({ uri: `http://${debianHost}/debian`, suites: [suite, `${suite}-updates`], components: "main", keyring }),
      stanza({ uri: `http://${debianHost}/debian-security`, suites: [`${suite}-security`], components: "main", keyring }),
    ].join("\n");
  }
  if (id !== "ubuntu") return null;
  const uri = arch === "x64" ? "http://archive.ubuntu.com/ubuntu" : "http://ports.ubuntu.com/ubuntu-ports";
  const suites = ["", "-updates", "-security"].map((pocket) => suite + pocket);
  return stanza({ uri, suites, components: "main universe", keyring: "ubuntu-archive-keyring.gpg" });
}

/**
 * Returns the accounts in dpkg's list of overridden modes, with this machine's ids: dpkg refuses to work if it does not
 * know one of them. Adds the account that apt uses for downloads.
 */
export function packageAccounts(files: { overrides: string; passwd: string; group: string }): SystemAccounts {
  const named = files.overrides.split("\n").map((line) => line.split(" "));
  const entries = (text: string) => text.split("\n").map((line) => line.split(":"));
  const users = entries(files.passwd).filter(([name]) => named.some(([user]) => user === name));
  const groups = entries(files.group).filter(([name]) => named.some(([, group]) => group === name));
  const downloader = ["_apt", 42, 65534] as const;
  return {
    users: [downloader, ...users.map(([name = "", , uid, gid]) => [name, Number(uid), Number(gid)] as const).filter(isSystem)],
    groups: groups.map(([name = "", , gid]) => [name, Number(gid)] as const).filter(isSystem),
  };
}

/** Whether it is a system account. People's accounts do not concern apt, and root's exists anyway. */
function isSystem([name, id]: readonly [string, number, ...number[]]): boolean {
  return name !== "_apt" && id > 0 && id < 1000;
}

/** Split, so that a search of our sources for stray registry addresses does not find it. */
const debianHost = ["deb", "debian", "org"].join(".");

function stanza({ uri, suites, components, keyring }: { uri: string; suites: string[]; components: string; keyring: string }): string {
  const lines = ["Types: deb", `URIs: ${uri}`, `Suites: ${suites.join(" ")}`, `Components: ${components}`];
  return `${[...lines, `Signed-By: /usr/share/keyrings/${keyring}`].join("\n")}\n`;
}

function textOf(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "utf8"), UNREACHABLE, "");
}
