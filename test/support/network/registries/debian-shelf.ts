import { gzipSync } from "node:zlib";
import { deb } from "./archives.ts";
import { fileItem, hash, type Shelf, textItem } from "./shelf.ts";

export interface DebianPackage {
  name: string;
  version: string;
}

/**
 * An unsigned archive, so sources need `[trusted=yes]`. Each package contains a program of the same name that prints
 * its version.
 */
export function debianShelf(suite: string, packages: readonly DebianPackage[]): Shelf {
  const shelf: Shelf = new Map();
  const stanzas = packages.map(({ name, version }) => {
    const control = `Package: ${name}\nVersion: ${version}\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: a test\n`;
    const body = deb(control, [[`./usr/bin/${name}`, `#!/bin/sh\necho ${name} ${version}\n`, 0o755]]);
    const path = `pool/main/${name[0]}/${name}/${name}_${version}_all.deb`;
    shelf.set(path, fileItem(body));
    return `${control}Filename: ${path}\nSize: ${body.length}\nSHA256: ${hash("sha256", body)}\n`;
  });
  const list = Buffer.from(`${stanzas.join("\n")}\n`);
  const lists = ["all", "amd64", "arm64"].flatMap((architecture) => [
    { name: `main/binary-${architecture}/Packages`, body: list },
    { name: `main/binary-${architecture}/Packages.gz`, body: gzipSync(list) },
  ]);
  const sums = lists.map(({ name, body }) => ` ${hash("sha256", body)} ${body.length} ${name}`);
  for (const { name, body } of lists) {
    shelf.set(`dists/${suite}/${name}`, fileItem(body));
    shelf.set(`dists/${suite}/${name.replace(/[^/]+$/, "")}by-hash/SHA256/${hash("sha256", body)}`, fileItem(body));
  }
  const head = [
    "Origin: test",
    `Suite: ${suite}`,
    `Codename: ${suite}`,
    "Date: Wed, 01 Jan 2020 00:00:00 UTC",
    "Acquire-By-Hash: yes",
    "Architectures: all amd64 arm64",
    "Components: main",
    "SHA256:",
  ];
  shelf.set(`dists/${suite}/Release`, textItem(`${[...head, ...sums].join("\n")}\n`));
  return shelf;
}
