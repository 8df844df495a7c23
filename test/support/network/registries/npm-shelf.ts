import { tarGz } from "./archives.ts";
import { fileItem, hash, jsonItem, type Shelf } from "./shelf.ts";

export interface NpmPackage {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  /** The content of index.js. */
  code?: string;
  /** Lists the package as very old ones are. */
  withoutIntegrity?: boolean;
}

/** A registry like npm's: full and abbreviated version lists, and tarballs under `/-/`. */
export function npmShelf(base: string, packages: readonly NpmPackage[]): Shelf {
  const shelf: Shelf = new Map();
  const names = new Set(packages.map(({ name }) => name));
  for (const name of names) {
    const versions: Record<string, object> = {};
    for (const { version, dependencies = {}, code = `module.exports = "${name} ${version}";\n`, withoutIntegrity } of packages.filter(
      (one) => one.name === name,
    )) {
      const manifest = { name, version, main: "index.js", dependencies };
      const body = tarGz([
        ["package/package.json", JSON.stringify(manifest)],
        ["package/index.js", code],
      ]);
      const path = `${name}/-/${name.split("/").at(-1)}-${version}.tgz`;
      const integrity = withoutIntegrity ? {} : { integrity: `sha512-${hash("sha512", body, "base64")}` };
      const dist = { tarball: `${base}${path}`, shasum: hash("sha1", body), ...integrity };
      versions[version] = { ...manifest, dist };
      shelf.set(path, fileItem(body));
      shelf.set(`${name}/${version}`, jsonItem({ ...manifest, dist }));
    }
    const latest = Object.keys(versions).at(-1);
    const short = { name, "dist-tags": { latest }, versions, modified: "2020-01-01T00:00:00.000Z" };
    const time = Object.fromEntries(Object.keys(versions).map((version) => [version, "2020-01-01T00:00:00.000Z"]));
    shelf.set(name, ({ accept = "" }) =>
      accept.includes("application/vnd.npm.install-v1+json")
        ? jsonItem(short, "application/vnd.npm.install-v1+json")
        : jsonItem({ ...short, _id: name, time, readme: `"tarball":"${base}not-a-link.tgz"` }),
    );
  }
  return shelf;
}
