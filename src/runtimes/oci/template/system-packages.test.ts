import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { packageAccounts, packageSources, systemPackages } from "./system-packages.ts";

describe("package sources inside", () => {
  it("are Debian's public archives, signed by Debian, for the machine's release", () => {
    const osRelease = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n';
    const text = packageSources({ osRelease, arch: "x64" }) ?? "";
    expect(text.match(/^Suites: .*$/gm)).toEqual(["Suites: bookworm bookworm-updates", "Suites: bookworm-security"]);
    expect(text.match(/^Signed-By: .*$/gm)).toEqual(Array(2).fill("Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"));
  });

  it("are Ubuntu's archives, with other ones for other processors", () => {
    const osRelease = 'ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME="noble"\n';
    expect(packageSources({ osRelease, arch: "x64" })).toContain("/ubuntu\nSuites: noble noble-updates noble-security\n");
    expect(packageSources({ osRelease, arch: "arm64" })).toContain("/ubuntu-ports\n");
  });

  it.each(["ID=fedora\nVERSION_CODENAME=x\n", "ID=debian\n", ""])("are empty for an unknown distribution: %j", (osRelease) => {
    expect(packageSources({ osRelease, arch: "x64" })).toBe(null);
  });
});

describe("package accounts", () => {
  it("are those in dpkg's overridden modes, and no others", () => {
    const accounts = packageAccounts({
      overrides: "root ssl-cert 0710 /etc/ssl/private\nmessagebus crontab 2755 /usr/bin/x\nada users 0700 /srv/ada\n",
      passwd:
        "root:x:0:0::/root:/bin/sh\nmessagebus:x:101:109::/:/bin/false\nada:x:1000:1000::/home/ada:/bin/sh\nredis:x:102:110::/:/bin/false\n",
      group: "root:x:0:\nssl-cert:x:107:postgres\ncrontab:x:111:\nredis:x:110:\nada:x:1000:\n",
    });
    expect(accounts).toEqual({
      users: [
        ["_apt", 42, 65534],
        ["messagebus", 101, 109],
      ],
      groups: [
        ["ssl-cert", 107],
        ["crontab", 111],
      ],
    });
  });
});

it.skipIf(!existsSync("/var/lib/dpkg/status"))("takes nothing from the user's own package sources", () => {
  const packages = systemPackages();
  expect(packages?.copies.map(({ path }) => path)).not.toContain("/etc/apt");
  expect(packages?.copies.filter(({ path }) => path.startsWith("/etc/apt/"))).toMatchObject([{ path: "/etc/apt/trusted.gpg.d" }]);
});
