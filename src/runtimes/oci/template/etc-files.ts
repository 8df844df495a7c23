import { readdirSync } from "node:fs";

/** The names of the sandbox's user and machine. The guest's defaults match them. */
export const sandboxUser = { name: "user", uid: 1000, gid: 1000, home: "/home/user" } as const;
export const sandboxHostname = "caisson";

export interface GeneratedFile {
  path: string;
  mode: number;
  content: string;
}

/**
 * A path of the host's /etc that is copied because programs need it and it contains no secret. Only world-readable
 * files are copied.
 */
export interface EtcCopy {
  path: string;
  why: string;
  /** Matches names below it that are left out. */
  except?: RegExp;
}

const fixedCopies: readonly EtcCopy[] = [
  { path: "/etc/ld.so.cache", why: "programs need it to find their libraries" },
  { path: "/etc/ld.so.conf", why: "programs need it to find their libraries" },
  { path: "/etc/ld.so.conf.d", why: "programs need it to find their libraries" },
  { path: "/etc/alternatives", why: "resolves names such as java and editor to programs" },
  { path: "/etc/ssl/certs", why: "public CA certificates", except: /\.key$/ },
  { path: "/etc/ssl/openssl.cnf", why: "openssl's defaults" },
  { path: "/etc/pki/tls/certs", why: "public CA certificates", except: /\.key$|^localhost/ },
  { path: "/etc/pki/tls/openssl.cnf", why: "openssl's defaults" },
  { path: "/etc/pki/ca-trust/extracted", why: "public CA certificates" },
  { path: "/etc/pki/java", why: "public CA certificates for Java" },
  { path: "/etc/crypto-policies", why: "ciphers that libraries may use" },
  { path: "/etc/localtime", why: "the time zone" },
  { path: "/etc/timezone", why: "the time zone" },
  { path: "/etc/locale.alias", why: "locale names" },
  { path: "/etc/locale.conf", why: "locale names" },
  { path: "/etc/mime.types", why: "file types by name" },
  { path: "/etc/magic", why: "file types by content" },
  { path: "/etc/magic.mime", why: "file types by content" },
  { path: "/etc/protocols", why: "protocol names" },
  { path: "/etc/services", why: "port names" },
  { path: "/etc/rpc", why: "service names" },
  { path: "/etc/networks", why: "network names" },
  { path: "/etc/ethertypes", why: "protocol names" },
  { path: "/etc/gai.conf", why: "address preferences" },
  { path: "/etc/os-release", why: "identifies the distribution" },
  { path: "/etc/lsb-release", why: "identifies the distribution" },
  { path: "/etc/debian_version", why: "identifies the distribution" },
  { path: "/etc/redhat-release", why: "identifies the distribution" },
  { path: "/etc/inputrc", why: "command-line key bindings" },
  { path: "/etc/terminfo", why: "terminal types" },
  { path: "/etc/fonts", why: "programs need it to find fonts" },
  { path: "/etc/perl", why: "Perl's settings" },
  { path: "/etc/maven/m2.conf", why: "Maven needs it to start; its settings.xml, which may contain passwords, stays out" },
  { path: "/etc/maven/logging", why: "Maven needs it to start" },
  { path: "/etc/dotnet/install_location", why: ".NET programs need it to find their runtime" },
  { path: "/etc/chromium.d", why: "Chromium's start-up script reads it" },
  { path: "/etc/chromium", why: "Chromium's settings", except: /^policies$/ },
  { path: "/etc/firefox", why: "Firefox's settings", except: /^policies$/ },
  { path: "/etc/firefox-esr", why: "Firefox's settings", except: /^policies$/ },
  { path: "/etc/glvnd", why: "graphics programs need it to find a driver" },
  { path: "/etc/vulkan", why: "graphics programs need it to find a driver" },
  { path: "/etc/OpenCL", why: "compute programs need it to find a driver" },
  { path: "/etc/texmf", why: "TeX's settings" },
  { path: "/etc/ImageMagick-6", why: "ImageMagick's limits" },
  { path: "/etc/ImageMagick-7", why: "ImageMagick's limits" },
];

const versionedCopies: readonly { pattern: RegExp; why: string; except?: RegExp }[] = [
  { pattern: /^(?:\.java|java|java-[\w.-]+)$/, why: "Java's settings", except: /password|\.prefs/ },
  { pattern: /^python[\d.]+$/, why: "Python's settings" },
  { pattern: /^php$/, why: "PHP extensions to load", except: /^(?:php\.ini|fpm|apache2|cgi)$/ },
  { pattern: /^R$/, why: "R's settings" },
];

/** Returns the paths of the host's /etc to copy, whether or not they exist. */
export function etcCopies(etc = "/etc"): EtcCopy[] {
  const versioned = readdirSync(etc)
    .sort()
    .flatMap((name) => {
      const known = versionedCopies.find(({ pattern }) => pattern.test(name));
      if (known === undefined) return [];
      return [{ path: `/etc/${name}`, why: known.why, ...(known.except === undefined ? {} : { except: known.except }) }];
    });
  return [...fixedCopies, ...versioned];
}

/**
 * Returns the files of /etc that identify the user and the machine. They are generated, so that nothing of the host
 * shows.
 */
export function etcGenerated(options: { shell: string; accounts?: SystemAccounts }): GeneratedFile[] {
  const { shell, accounts = noAccounts } = options;
  const file = (path: string, ...lines: string[]) => ({ path, mode: 0o644, content: `${lines.join("\n")}\n` });
  return [
    file("/etc/passwd", ...passwdLines(shell, accounts)),
    file("/etc/group", ...groupLines(accounts)),
    { path: "/etc/nsswitch.conf", mode: 0o644, content: nameServiceSwitch({ hosts: "files" }) },
    file("/etc/hostname", sandboxHostname),
    file("/etc/hosts", `127.0.0.1 localhost ${sandboxHostname}`, `::1 localhost ip6-localhost ip6-loopback`),
    file("/etc/host.conf", "multi on"),
    file("/etc/resolv.conf", "# No name server: the sandbox has no network."),
    file("/etc/shells", "/bin/sh", ...(shell === "/bin/sh" ? [] : [shell])),
    file("/etc/profile", ...profileLines),
    file("/etc/bash.bashrc", ...bashrcLines),
    file("/etc/bashrc", ...bashrcLines),
    file("/etc/fstab", "# The host manages the mounts."),
  ];
}

/** Returns the text of nsswitch.conf, which says where names of each kind come from. */
export function nameServiceSwitch({ hosts }: { hosts: string }): string {
  const kinds = ["passwd", "group", "shadow", "hosts", "networks", "protocols", "services", "ethers", "rpc"];
  return kinds.map((kind) => `${kind}: ${kind === "hosts" ? hosts : "files"}\n`).join("");
}

/** The machine's accounts that programs inside look up by name: name, uid, gid. */
export interface SystemAccounts {
  users: readonly (readonly [string, number, number])[];
  groups: readonly (readonly [string, number])[];
}

export const noAccounts: SystemAccounts = { users: [], groups: [] };

/** Name, uid and gid, which are the same on all relevant distributions. Programs look some of them up by name. */
const systemUsers: readonly (readonly [string, number, number])[] = [
  ["daemon", 1, 1],
  ["bin", 2, 2],
  ["sys", 3, 3],
  ["games", 5, 60],
  ["man", 6, 12],
  ["lp", 7, 7],
  ["mail", 8, 8],
  ["news", 9, 9],
  ["www-data", 33, 33],
  ["backup", 34, 34],
];
const systemGroups: readonly (readonly [string, number])[] = [
  ["adm", 4],
  ["tty", 5],
  ["disk", 6],
  ["kmem", 15],
  ["utmp", 43],
  ["video", 44],
  ["staff", 50],
  ["users", 100],
];

function passwdLines(shell: string, { users }: SystemAccounts): string[] {
  const { name, uid, gid, home } = sandboxUser;
  const more = users.filter(([system]) => !systemUsers.some(([known]) => known === system));
  return [
    `root:x:0:0:root:/root:${shell}`,
    ...[...systemUsers, ...more].map(([system, id, group]) => `${system}:x:${id}:${group}:${system}:/nonexistent:/usr/sbin/nologin`),
    `${name}:x:${uid}:${gid}:${name}:${home}:${shell}`,
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
  ];
}

function groupLines({ groups }: SystemAccounts): string[] {
  const known = [...systemUsers.map(([name, , gid]) => [name, gid] as const), ...systemGroups];
  const more = groups.filter(([name]) => !known.some(([system]) => system === name));
  return [
    "root:x:0:",
    ...[...known, ...more].map(([name, gid]) => `${name}:x:${gid}:`),
    `${sandboxUser.name}:x:${sandboxUser.gid}:`,
    "nogroup:x:65534:",
  ];
}

/** A login shell must not lose the toolchains, so PATH is only set if it is empty. */
const profileLines = [
  'if [ -z "$PATH" ]; then export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; fi',
  "umask 022",
  'if [ -n "$BASH_VERSION" ] && [ -r /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi',
];

const bashrcLines = ['case "$-" in *i*) ;; *) return ;; esac', "PS1='\\u@\\h:\\w\\$ '", "shopt -s checkwinsize"];
